// Everything around an operator in one namespace of a real API server: the fault proxy, the scripted internal API, a node
// player, a daemon that reports ready, and operators that can be killed. Must not know any single test.
import { randomUUID } from 'node:crypto';
import { systemClock } from '#base/clock.ts';
import { createLogger, type Logger } from '#base/log.ts';
import { createMetrics } from '#base/metrics.ts';
import { apply, mergePatch } from '#kube/apply.ts';
import { makeKubeClient } from '#kube/client.ts';
import { openConnection } from '#kube/connection.ts';
import { Informer } from '#kube/informer.ts';
import { type KubeObject, PROJECTS, SESSIONS } from '#kube/resource-types.ts';
import { makeInternalApi } from '#operator/internal-api.ts';
import { makeOperator, type Operator } from '#operator/operator.ts';
import type { InstallationInput } from '#schema/installation.ts';
import { METRICS } from '#schema/metrics.ts';
import { type Session, SessionKind } from '#schema/resources/session.ts';
import type { ProjectFact, SessionFact } from '#schema/wire/sync.ts';
import { type FaultProxy, type RecordedCall, startFaultProxy } from './fault-proxy.ts';
import type { TestApi } from './kube.ts';
import { type NodePlayer, startNodePlayer } from './node-player.ts';
import { type ScriptedInternalApi, startScriptedInternalApi } from './scripted-internal-api.ts';
import { aHealth, anInstallation, aProjectFact } from './session-fixtures.ts';
import { until } from './until.ts';

/** An operator that runs in this process. */
export type RunningOperator = Readonly<{
  operator: Operator;
  logged: readonly string[];
  /** Passes of the session controller so far, by result. */
  passes: (result: 'done' | 'delayed' | 'retry' | 'stalled') => Promise<number>;
  /** Answers 409 so far. */
  conflicts: () => Promise<number>;
  /** Ends as a signal does. */
  stop: () => Promise<void>;
  /** Ends at once: nothing of it reaches the API server any more. */
  kill: () => void;
}>;

/** One namespace with all around an operator. */
export type OperatorBench = Readonly<{
  namespace: string;
  proxy: FaultProxy;
  internal: ScriptedInternalApi;
  node: NodePlayer;
  log: Logger;
  startOperator: (installation?: Partial<InstallationInput>) => Promise<RunningOperator>;
  /** Makes a Project and waits until the operator has synced it. */
  project: (spec?: Readonly<Record<string, unknown>>) => Promise<KubeObject>;
  createSession: (name: string, spec?: Readonly<Record<string, unknown>>) => Promise<Session>;
  patchSession: (name: string, spec: Readonly<Record<string, unknown>>) => Promise<void>;
  deleteSession: (name: string) => Promise<void>;
  session: (name: string) => Promise<Session | undefined>;
  /** Waits until the stored Session satisfies `test`; the message has its status. */
  untilSession: (name: string, what: string, test: (session: Session) => boolean) => Promise<Session>;
  untilGone: (name: string) => Promise<void>;
  fact: (uid: string) => SessionFact | undefined;
  raise: (uid: string, changes: Partial<SessionFact>) => void;
  /** Whether daemons report ready by themselves; true at first. */
  daemons: (answer: boolean) => void;
  /** Mutating calls of operators since `mark`, without events and leases. */
  writesSince: (mark: number) => RecordedCall[];
  mark: () => number;
  stop: () => Promise<void>;
}>;

const isBookkeeping = (call: RecordedCall): boolean => call.resource === 'leases' || call.resource === 'events';

/** One line for a write, as in `apply sessions/status fix-login`. */
export const writeLine = (call: RecordedCall): string =>
  `${call.verb} ${call.resource}${call.subresource === undefined || call.subresource === '' ? '' : `/${call.subresource}`}`;

/** A bench in a fresh namespace. `api` has both CRDs. */
export const startOperatorBench = async (api: TestApi): Promise<OperatorBench> => {
  const namespace = await api.namespace();
  const { client } = api.admin;
  const proxy = await startFaultProxy({ kubeconfigPath: api.kubeconfigPath });
  const logged: string[] = [];
  const log = createLogger({ level: 'debug', write: (line) => void logged.push(line) });
  const internal = await startScriptedInternalApi(log);
  const node = await startNodePlayer(api.admin, namespace);
  const running = new Set<RunningOperator>();
  let daemonsAnswer = true;

  internal.onSync(
    (request): ProjectFact => ({
      ...aProjectFact(),
      uid: request.uid,
      generation: request.generation,
      syncToken: request.syncToken,
    }),
  );

  // The daemons: a bound pod that runs reports ready, once for each pod.
  const sessions = new Informer<Session>(
    { type: SESSIONS, selection: { namespace }, project: (object) => SessionKind.object.parse(object) },
    { client, clock: systemClock, random: Math.random, log, metrics: api.admin.metrics },
  );
  const generations = new Map<string, number>();
  const claimed = new Set<string>();
  const answerDaemon = (key: string): void => {
    const session = sessions.cache.get(key);
    const uid = session?.metadata.uid;
    const podUid = session?.status?.pod?.uid;
    if (!daemonsAnswer || session === undefined || uid === undefined || podUid === undefined || claimed.has(podUid))
      return;
    const pod = node.pods().find(({ metadata }) => metadata.uid === podUid);
    if ((pod?.['status'] as { phase?: string } | undefined)?.phase !== 'Running') {
      setTimeout(() => answerDaemon(key), 20).unref();
      return;
    }
    claimed.add(podUid);
    const generation = (generations.get(uid) ?? 0) + 1;
    generations.set(uid, generation);
    const known = internal.fact(uid);
    const before = known?.kind === 'session' ? known : undefined;
    const branch = `beeuni/${session.metadata.name}-${uid.slice(0, 5)}`;
    const id = session.status?.harness?.id ?? 'opencode';
    internal.raise({
      kind: 'session',
      uid,
      podUid,
      generation,
      health: aHealth({ branch, harness: { id, version: '1.0.0', state: 'ok', ready: true, error: null } }),
      activity: { state: 'Idle', since: new Date().toISOString(), turnId: null },
      idleSince: null,
      lastTurn: before?.lastTurn ?? null,
      specPromptFinal: before?.specPromptFinal ?? null,
      wanted: before?.wanted ?? false,
      fencedPodUid: null,
      budgetReached: before?.budgetReached ?? false,
    });
  };
  sessions.subscribe(answerDaemon);
  sessions.start();
  await sessions.whenSynced();

  const startOperator = async (installation: Partial<InstallationInput> = {}): Promise<RunningOperator> => {
    const connection = await openConnection({ kubeconfigPath: proxy.kubeconfigPath });
    const metrics = createMetrics(METRICS);
    const lines: string[] = [];
    const own = createLogger({ level: 'debug', write: (line) => void lines.push(line) });
    let alive = true;
    const raw = makeKubeClient({
      connection,
      clock: systemClock,
      random: Math.random,
      metrics: metrics.instruments,
      userAgent: 'beeuni-operator/test',
    });
    const operator = makeOperator({
      client: raw.guarded(() => alive),
      api: makeInternalApi({ baseUrl: internal.url, token: async () => 'operator' }),
      clock: systemClock,
      random: Math.random,
      log: own,
      metrics,
      installation: anInstallation(installation),
      version: '0.1.0',
      namespaces: [namespace],
      concurrency: 8,
      // A lease of its own for each: one that was killed holds nobody up.
      lease: { namespace, name: `operator-${randomUUID().slice(0, 8)}`, identity: randomUUID() },
      onLost: () => {},
    });
    const signal = new AbortController().signal;
    for (const part of operator.parts) await part.start(signal);
    const end = async (): Promise<void> => {
      for (const part of operator.parts.toReversed()) await part.stop?.();
      await raw.close();
    };
    const sum = async (start: string): Promise<number> =>
      (await metrics.page.render())
        .split('\n')
        .filter((line) => line.startsWith(start))
        .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    let ended: Promise<void> | undefined;
    const handle: RunningOperator = {
      operator,
      logged: lines,
      passes: (result) => sum(`beeuni_reconcile_total{controller="session",result="${result}"}`),
      conflicts: () => sum('beeuni_k8s_conflicts_total'),
      stop: async () => {
        running.delete(handle);
        ended ??= end();
        await ended;
      },
      kill: () => {
        alive = false;
        running.delete(handle);
        void connection.close();
        ended ??= end().catch(() => undefined);
      },
    };
    running.add(handle);
    await until('the operator leads', () => operator.isLeading(), { describe: () => lines.slice(-20) });
    return handle;
  };

  const session = async (name: string): Promise<Session | undefined> => {
    const found = await client.get(SESSIONS, { namespace, name });
    return found === undefined ? undefined : SessionKind.object.parse(found);
  };
  const untilSession: OperatorBench['untilSession'] = async (name, what, isSo) => {
    let last: Session | undefined;
    return until(
      `session ${name} ${what}`,
      async () => {
        last = await session(name);
        return last !== undefined && isSo(last) ? last : undefined;
      },
      {
        describe: () => ({
          status: last?.status,
          finalizers: last?.metadata.finalizers,
          log: [...running]
            .flatMap((each) => each.logged)
            .filter((line) => /warn|error/.test(line))
            .slice(-10),
        }),
      },
    );
  };

  return {
    namespace,
    proxy,
    internal,
    node,
    log,
    startOperator,
    session,
    untilSession,
    project: async (spec = {}) => {
      const object = {
        metadata: { namespace, name: 'shop' },
        spec: { repository: { url: 'https://git.example.com/shop.git' }, ...spec },
      };
      await apply(client, PROJECTS, object, { manager: 'beeuni-test', force: true });
      return until('the project is ready', async () => {
        const found = await client.get(PROJECTS, { namespace, name: 'shop' });
        const status = found?.['status'] as { observedGeneration?: number; phase?: string } | undefined;
        return status?.observedGeneration === found?.metadata.generation && status?.phase !== 'Pending'
          ? found
          : undefined;
      });
    },
    createSession: async (name, spec = {}) => {
      const object = { metadata: { namespace, name }, spec: { projectRef: { name: 'shop' }, ...spec } };
      return SessionKind.object.parse(await client.create(SESSIONS, object, { manager: 'beeuni-test' }));
    },
    patchSession: async (name, spec) => {
      await mergePatch(client, SESSIONS, { namespace, name }, { spec }, { manager: 'beeuni-test' });
    },
    deleteSession: async (name) => {
      const found = await session(name);
      if (found !== undefined) await client.delete(SESSIONS, { namespace, name }, { uid: found.metadata.uid });
    },
    untilGone: async (name) => {
      let last: Session | undefined;
      await until(
        `session ${name} is gone`,
        async () => {
          last = await session(name);
          return last === undefined;
        },
        { describe: () => last?.status?.conditions },
      );
    },
    fact: (uid) => {
      const found = internal.fact(uid);
      return found?.kind === 'session' ? found : undefined;
    },
    raise: (uid, changes) => {
      const found = internal.fact(uid);
      if (found?.kind !== 'session') throw new Error(`there is no fact of session ${uid}`);
      internal.raise({ ...found, ...changes });
    },
    daemons: (next) => {
      daemonsAnswer = next;
      if (next) for (const { key } of sessions.cache.entries()) answerDaemon(key);
    },
    mark: () => proxy.calls.length,
    writesSince: (mark) => proxy.calls.slice(mark).filter((call) => call.mutates && !isBookkeeping(call)),
    stop: async () => {
      for (const each of Array.from(running)) await each.stop();
      await sessions.stop();
      await node.stop();
      await internal.stop();
      await proxy.stop();
    },
  };
};
