// Puts together the model gateway: handlers, budgets, usage rows and metrics. Must not know HTTP servers or how projects
// and sessions are kept.
import { randomUUID } from 'node:crypto';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import { effectiveFlags, type PlatformFlags } from '#schema/rules/effective-flags.ts';
import { makeFindLimits } from '../app/call-limits.ts';
import type { ReadProviderKeys, ReadRegistry } from '../app/provider-ports.ts';
import { makeRateLimit } from '../app/rate-limit.ts';
import type { CeilingOfRun } from '../app/run-ceiling.ts';
import type { RunningCalls } from '../app/running-calls.ts';
import { type Budgets, costsByBudget, makeBudgets } from '../gateway/budgets.ts';
import { gatewayErrorShape } from '../gateway/error-shape.ts';
import type { KeyPools } from '../gateway/key-pool.ts';
import { makeGatewayModelsHandler } from '../gateway/models.ts';
import type { GatewayPorts, ObserveGateway, OnBudgetReached, ResolveRole, UsageRecorder } from '../gateway/ports.ts';
import { makeServeCall } from '../gateway/serve.ts';
import type { Upstreams } from '../gateway/upstream.ts';
import { makeUsageRecorder } from '../gateway/usage-recorder.ts';
import { WIRES } from '../gateway/wires.ts';
import type { GatewayHandlers } from '../http/gateway.ts';
import { makeLeaseBudget, rankOfTurn } from '../store/budgets.ts';
import { firstRow } from '../store/statement.ts';
import { insertUsage } from '../store/usage.ts';
import { type Background, type Basics, makeRounds } from './basics.ts';

/** Budgets and usage rows: for the gateway, and for calls that the control plane makes itself. */
export type Metering = Readonly<{ usage: UsageRecorder; budgets: Budgets; background: Background }>;

/** What the gateway needs besides. */
export type GatewayWiring = Pick<Basics, 'clock' | 'log' | 'instruments'> &
  Readonly<{
    metering: Metering;
    flags: PlatformFlags;
    findProject: (uid: string) => Project | undefined;
    findSession: (uid: string) => Session | undefined;
    readRegistry: ReadRegistry;
    readKeys: ReadProviderKeys;
    /** The keys that rest: one memory for all calls of the replica. */
    keyPools: KeyPools;
    running: Pick<RunningCalls, 'begin' | 'end' | 'look'>;
    resolveRole: ResolveRole;
    upstreams: Upstreams;
    onBudgetReached: OnBudgetReached;
    maxRequestBytes: number;
    /** Most projects that have series of their own; the ones with least left. */
    projectSeries: number;
    ceilingOfRun?: CeilingOfRun | undefined;
    calls: Readonly<{ perSecond: number; burst: number }>;
  }>;

/**
 * The gateway's side; `refresh` sets the gauges, before they are read. `background` ends calls whose credential was taken
 * away.
 */
export type GatewaySide = Readonly<{ handlers: GatewayHandlers; refresh: () => void; background: Background }>;

/** How often calls that run are looked at; with the question itself far below 5 s. Units: milliseconds. Source: FC12. */
const RUNNING_ROUND_MS = 2_000;

const MAX_USAGE_FILE_BYTES = 64 * 2 ** 20;

/** Puts together what counts calls. `usageFile`: where usage rows wait while the database is away. */
export const wireMetering = (
  wiring: Pick<Basics, 'clock' | 'log' | 'database'> & Readonly<{ usageFile: string }>,
): Metering => {
  const { clock, log, database } = wiring;
  const budgets = makeBudgets({
    lease: makeLeaseBudget(database, randomUUID()),
    rankOfTurn: async (limit, turnId) => (await firstRow(database.query, rankOfTurn(limit, turnId)))?.rank ?? 0,
    clock,
  });
  const usage = makeUsageRecorder({
    insert: async (rows) => {
      await database.query(insertUsage(rows));
    },
    onSettled: (rows) => budgets.stored(costsByBudget(rows)),
    file: wiring.usageFile,
    maxFileBytes: MAX_USAGE_FILE_BYTES,
    clock,
    log,
  });
  return { usage, budgets, background: { name: 'usage', start: usage.start, stop: usage.stop } };
};

/** Counts calls of the gateway, and those that the control plane makes itself. */
export const observeCalls = (instruments: Basics['instruments']): ObserveGateway => ({
  ended: ({ provider, outcome, firstByteMs, durationMs, promptTokens, completionTokens, costMicroUsd }) => {
    instruments.llmRequestsTotal.inc({ provider, outcome });
    instruments.llmRequestDurationSeconds.observe({ provider }, durationMs / 1_000);
    if (firstByteMs !== null) instruments.llmTimeToFirstTokenSeconds.observe({ provider }, firstByteMs / 1_000);
    if (promptTokens > 0) instruments.llmTokensTotal.inc({ provider, direction: 'input' }, promptTokens);
    if (completionTokens > 0) instruments.llmTokensTotal.inc({ provider, direction: 'output' }, completionTokens);
    if (costMicroUsd > 0) instruments.llmCostMicrousdTotal.inc({ provider }, costMicroUsd);
  },
  fellBack: (reason) => instruments.llmFallbacksTotal.inc({ reason }),
  rotated: () => instruments.llmRetriesTotal.inc({}),
});

/** Puts the gateway together. */
export const wireGateway = (wiring: GatewayWiring): GatewaySide => {
  const { clock, log, instruments } = wiring;
  const { usage, budgets } = wiring.metering;
  /** Policies by project object: a changed project is another object. */
  const policies = new WeakMap<Project, NonNullable<ReturnType<GatewayPorts['findProjectPolicy']>>>();
  const { keyPools } = wiring;
  const { running } = wiring;
  const ports = {
    readRegistry: wiring.readRegistry,
    findProjectPolicy: (projectUid) => {
      const project = wiring.findProject(projectUid);
      if (project === undefined) return undefined;
      const known = policies.get(project);
      if (known !== undefined) return known;
      const gateway = effectiveFlags(project.spec.features, wiring.flags).llm_gateway.value;
      const policy = { gateway, allowed: project.spec.models?.allowed ?? null };
      policies.set(project, policy);
      return policy;
    },
    readKeys: wiring.readKeys,
    resolveRole: wiring.resolveRole,
    findLimits: makeFindLimits(wiring.findSession, wiring.findProject),
    budgets,
    onBudgetReached: (reached) => {
      instruments.budgetRejectionsTotal.inc({ scope: reached.refusal.scope });
      wiring.onBudgetReached(reached);
    },
    takeCall: makeRateLimit({ clock, ...wiring.calls }),
    upstreams: wiring.upstreams,
    running,
    usage,
    clock,
    log,
    maxRequestBytes: wiring.maxRequestBytes,
    ceilingOfRun: wiring.ceilingOfRun,
    observe: observeCalls(instruments),
    keyPools,
  } satisfies GatewayPorts & Readonly<{ keyPools: typeof keyPools }>;
  return {
    handlers: {
      chat: makeServeCall(ports, WIRES.chat),
      responses: makeServeCall(ports, WIRES.responses),
      messages: makeServeCall(ports, WIRES.messages),
      embeddings: makeServeCall(ports, WIRES.embeddings),
      models: makeGatewayModelsHandler(ports),
      errorShapes: { openai: gatewayErrorShape('openai'), anthropic: gatewayErrorShape('anthropic') },
    },
    background: makeRounds(wiring, 'running calls', RUNNING_ROUND_MS, running.look),
    refresh: () => {
      const { all, projects } = budgets.lowestRests();
      const ofProjects = [...projects]
        .sort(([, one], [, other]) => one - other)
        .slice(0, wiring.projectSeries)
        .flatMap(([uid, rest]) => {
          const { namespace, name } = wiring.findProject(uid)?.metadata ?? {};
          if (namespace === undefined || name === undefined) return [];
          return [[{ namespace, project: name }, rest] as const];
        });
      instruments.budgetRemainingRatio.replace([[{ namespace: '', project: '' }, all], ...ofProjects]);
      // A provider that was changed has another pool for a while.
      const counts = new Map<string, number>();
      for (const [pool, count] of keyPools.resting()) {
        const provider = pool.slice(0, pool.indexOf(' '));
        counts.set(provider, (counts.get(provider) ?? 0) + count);
      }
      for (const [provider, count] of counts) instruments.llmCooldowns.set({ provider }, count);
    },
  };
};
