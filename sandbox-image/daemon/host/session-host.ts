// Serves one claimed session: relay, event log, reports, boot, harness and turns, put together from their parts.
// Must not know how the process began or ends; main.ts does.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import { budgetsOfRun } from '#schema/settings/run-settings.ts';
import type { ClaimAnswer } from '#schema/wire/claim.ts';
import type { TurnBlock } from '#schema/wire/health.ts';
import type { HumanAnswerWire } from '#schema/wire/requests.ts';
import type { DaemonConfig } from '../config.ts';
import type { Adapter, Harness, HarnessHost } from '../harness/contract/adapter.ts';
import { capabilitiesOf } from '../harness/contract/capabilities.ts';
import { ROOT_THREAD } from '../harness/contract/events.ts';
import type { ToolHost } from '../harness/contract/tools.ts';
import { allowedPermissions } from './allowed-permissions.ts';
import { checkOutUntilDone, waitForIsolation } from './boot/bring-up.ts';
import type { Probe } from './boot/isolation-probe.ts';
import { type Answering, createBroker } from './broker.ts';
import { commandEnvironment, type Grants } from './command-environment.ts';
import type { SessionCalls } from './control-plane.ts';
import type { DaemonState } from './daemon-state.ts';
import { type EventLog, startEventLog } from './event-log/event-log.ts';
import { openSpool, readLeftovers } from './event-log/spool.ts';
import { makeBranchWork } from './git/branch-work.ts';
import { checkOut, restoreRepository } from './git/checkout.ts';
import { makeRunGit } from './git/run-git.ts';
import { makeSessionBranch } from './git/session-branch.ts';
import { healthDocumentOf } from './health/health-document.ts';
import { startReporter } from './health/reporter.ts';
import type { LogRing } from './logs.ts';
import { endLeftovers } from './process/leftovers.ts';
import type { ProjectMaterial } from './project/material.ts';
import type { Redactor } from './redact.ts';
import { JUDGE_PATH } from './relay/child-calls.ts';
import type { Relay } from './relay/relay.ts';
import { TOOLS_PATH } from './relay/tool-calls.ts';
import { findRulesFile } from './rules-file.ts';
import { makeRuntimeVerbs, type RuntimeVerbs } from './runtime-verbs.ts';
import { prepareSessionTools } from './session-tools.ts';
import { tellRetries } from './tell-retries.ts';
import { type AbortReason, createTurns, type Turns } from './turns/turns.ts';

/** Ports of a session. */
export type SessionHostPorts = Readonly<{
  config: DaemonConfig;
  claim: ClaimAnswer;
  calls: SessionCalls;
  /** undefined: this image has no adapter for the harness of the claim. */
  adapter: Adapter | undefined;
  /** Whether the network policy is in force; undefined: nothing is known here that must not be reached. */
  probe: Probe | undefined;
  relay: Relay;
  relayToken: string;
  state: DaemonState;
  ring: LogRing;
  redactor: Redactor;
  marker: Readonly<{ name: string; value: string }>;
  randomName: () => string;
  /** The control plane serves another daemon, or refuses this one. */
  onRefused: (reason: 'superseded' | 'unauthenticated') => void;
  /** A part of this process can neither be used nor ended. */
  onStuck: (reason: string) => void;
  clock: Clock;
  random: () => number;
  log: Logger;
}>;

/** A session that is being served. */
export type SessionHost = Readonly<{
  nudge: () => void;
  abort: (turnId: string | undefined) => string | undefined;
  /** Takes no more prompts; true when no turn runs now. */
  drain: (deadlineMs: number, reason: AbortReason) => boolean;
  replaceEnvironment: (revision: number, environment: Readonly<Record<string, string>>) => number;
  commandEnvironment: () => Readonly<Record<string, string>>;
  currentTurnId: () => string | null;
  /** How a turn stands; null before the first could run. Source: A24. */
  standing: (messageId: string | undefined) => TurnBlock | null;
  /** What clients ask of the harness besides prompts. */
  verbs: RuntimeVerbs;
  /** Gives the harness a person's answer. */
  answer: (id: string, answer: HumanAnswerWire) => Answering;
  /** Drains, pushes, stores what is left, says bye, ends the harness. Source: K17. */
  shutDown: (drainMs: number, reason: string) => Promise<void>;
  /** Ends at once, without a word to the control plane. */
  abandon: () => Promise<void>;
  /** Lets the running turn end and stores what is left; ends nothing else. For a process that can only be killed. */
  lastWords: () => Promise<void>;
}>;

/** The beginning of a hash of what a claim said, so that two of them can be compared. */
const etagOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);

/** Parts of the 30 s that stay after the drain. Units: milliseconds. */
const PUSH_LIMIT_MS = 10_000;
const FLUSH_LIMIT_MS = 10_000;
/** How long a verb waits for its events to be stored. Units: milliseconds. */
const VERB_FLUSH_LIMIT_MS = 5_000;
const HARNESS_STOP_MS = 2_000;

/** Starts serving; returns at once, the boot goes on by itself. */
export const serveSession = (ports: SessionHostPorts): SessionHost => {
  const { config, claim, calls, state, clock, log, random, relay, redactor } = ports;
  const ending = new AbortController();
  const run = makeRunGit(config.workspaceDir, config.searchPath);
  const remoteUrl = `${relay.origin}/git`;
  let grants: Grants = { revision: claim.envRevision, environment: claim.env };
  let harness: Harness | undefined;
  let turns: Turns | undefined;
  let draining: Readonly<{ deadlineMs: number; reason: AbortReason }> | undefined;

  const secretsChanged = (): void =>
    redactor.replace([...Object.values(grants.environment), claim.credential, claim.daemonCredential]);
  secretsChanged();
  relay.open({
    controlPlaneUrl: config.controlPlaneUrl,
    gatewayPath: claim.gatewayPath,
    gitPath: claim.gitPath,
    credential: claim.credential,
    sessionUid: claim.session.uid,
    generation: claim.generation,
    maxModelRequestBytes: claim.maxModelRequestBytes,
  });
  const configuration = {
    repository: claim.repository,
    commit: claim.baseCommit,
    agentConfigEtag: etagOf([claim.agents, claim.beeuniTools ?? null, claim.projectTools, claim.piPackages]),
    catalogEtag: etagOf(claim.models),
    fallbackReason: null,
  };
  state.report({ configuration });
  state.report({ harnessId: claim.harness, sessionBranch: claim.branch, hasCredential: true });
  state.reach('claimed');

  const spoolDirectory = join(config.dataDir, 'spool');
  const leftovers = readLeftovers(spoolDirectory, claim.previous);
  const idPrefix = ports.randomName();
  const spool = openSpool(spoolDirectory, `${claim.generation}-${idPrefix}`);
  const events: EventLog = startEventLog({
    spool,
    leftovers,
    append: calls.appendEvents,
    newId: (n) => `ev_${idPrefix}_${n}`,
    onRefused: ports.onRefused,
    clock,
    random,
    log,
  });
  const emit: EventLog['emit'] = (event, place) => events.emit(event, place);
  tellRetries({ relay, emit, turnId: () => turns?.activity().turnId ?? null, clock });
  const request = { branch: claim.branch, baseCommit: claim.baseCommit, author: claim.author, remoteUrl };
  const restore = () => restoreRepository(run, config.workspaceDir, request, ending.signal);
  const branch = makeSessionBranch({ run, branch: claim.branch, state, emit, redact: redactor.redact, restore, log });

  const turnChanged = (): void => {
    const activity = turns?.activity();
    if (activity !== undefined) state.report({ turnId: activity.turnId, sinceMs: activity.sinceMs });
  };
  const broker = createBroker({
    emit: (event, threadId) => emit(event, { threadId, turnId: turns?.activity().turnId ?? null }),
    onChange: () => state.report({ openRequests: broker.openCount() }),
    allowed: allowedPermissions(join(config.dataDir, 'allowed.json'), claim.session.uid, log),
    clock,
  });

  const healthChanged = (): void => {
    const health = harness?.health() ?? null;
    const wasOk = state.read().harness?.state === 'ok';
    const { bootError } = state.read();
    const isBroken = health?.state === 'error';
    const ownError = bootError?.category === 'HarnessBoot' && harness !== undefined;
    state.report({
      harness: health,
      ...(harness === undefined ? {} : { harnessCapabilities: capabilitiesOf(harness.optional) }),
      ...(isBroken
        ? { bootError: { category: 'HarnessBoot' as const, message: health.error ?? 'the harness does not start' } }
        : {}),
      ...(!isBroken && ownError && health?.state === 'ok' ? { bootError: null } : {}),
    });
    if (health?.state !== 'ok') return;
    state.reach('ready');
    if (!wasOk) {
      emit(
        { type: 'harness.selected', data: { id: claim.harness, version: health.version } },
        { threadId: ROOT_THREAD, turnId: null, hidden: true },
      );
    }
    turns?.poke();
  };

  const harnessHost = async (material: ProjectMaterial, tools: ToolHost): Promise<HarnessHost> => ({
    session: {
      uid: claim.session.uid,
      title: claim.session.name,
      agent: claim.agent,
      agents: claim.agents,
      model: claim.model,
      models: claim.models,
      roles: claim.roles,
      unattended: claim.unattended,
    },
    relay: {
      modelBaseUrl: `${relay.origin}/v1`,
      environmentUrl: `${relay.origin}/env`,
      toolsUrl: `${relay.origin}${TOOLS_PATH}`,
      judgeUrl: `${relay.origin}${JUDGE_PATH}`,
      token: ports.relayToken,
    },
    paths: {
      workspace: config.workspaceDir,
      data: join(config.dataDir, claim.harness),
      config: join(config.configDir, claim.harness),
      home: config.homeDir,
      temporary: config.temporaryDir,
    },
    rules: await findRulesFile(config.workspaceDir, log),
    tools,
    skills: material.skills,
    configDirectory: material.configDirectory,
    packages: material.packages,
    marker: ports.marker,
    searchPath: config.searchPath,
    emit: (event) => {
      if (turns === undefined) emit(event, { threadId: event.threadId, turnId: null });
      else turns.fromHarness(event);
    },
    ask: broker.ask,
    output: (line) => ports.ring.add('harness', line),
    healthChanged,
    endLeftovers: () => endLeftovers(ports.marker, new Set(), log),
    giveUp: ports.onStuck,
    log: log.child({ harness: claim.harness }),
    clock,
  });

  /** What the project brings, and the tools of the session. */
  const prepareTools = async (): Promise<Readonly<{ material: ProjectMaterial; tools: ToolHost }>> => {
    const prepared = await prepareSessionTools(
      {
        config,
        claim,
        web: calls.web,
        run,
        relay,
        marker: ports.marker,
        commandEnvironment: () => commandEnvironment(claim, grants),
        ask: broker.ask,
        output: (line) => ports.ring.add('harness', line),
        clock,
        log,
      },
      ending.signal,
    );
    state.report({ configuration: { ...configuration, fallbackReason: prepared.material.fallbackReason } });
    return prepared;
  };

  const startTurns = (started: Harness): Turns =>
    createTurns({
      takeNextTurn: async () => {
        const turn = await calls.takeNextTurn();
        // What is saved later does not touch this run. Source: 40-settings B19, B20.
        if (turn !== null) relay.limitModels(budgetsOfRun(turn.settings).max_model_request_bytes);
        return turn;
      },
      harness: started,
      harnessId: claim.harness,
      branch: claim.branch,
      defaults: { agent: claim.agent, model: claim.model?.name ?? null },
      workspace: branch,
      emit: (event, place) => {
        emit(event, place);
      },
      flush: events.flush,
      closeRequests: broker.closeAll,
      redact: redactor.redact,
      onChange: turnChanged,
      clock,
      random,
      log,
    });

  const boot = async (): Promise<void> => {
    const bringUp = { state, clock, random, log };
    if (ports.adapter === undefined) {
      const message = `harness_not_available: this image has no adapter for the harness ${claim.harness}`;
      log.error('the boot ends', { reason: message });
      state.report({ bootError: { category: 'HarnessBoot', message } });
      return;
    }
    const [isIsolated, checkout] = await Promise.all([
      waitForIsolation(bringUp, config.isolationProbe, ports.probe, ending.signal),
      checkOutUntilDone(bringUp, () => checkOut(run, config.workspaceDir, request, ending.signal), ending.signal),
    ]);
    if (!isIsolated || checkout === undefined) return;
    emit(
      { type: 'workspace.checked_out', data: { branch: checkout.branch, commit: checkout.commit } },
      { threadId: ROOT_THREAD, turnId: null },
    );
    const knownRemote = checkout.kept ? undefined : checkout.commit;
    branch.checkedOut(makeBranchWork(run, { branch: claim.branch, remoteUrl, knownRemote, log }));
    if (checkout.kept) await branch.push(null);
    const { material, tools } = await prepareTools();
    const started = await ports.adapter.start(await harnessHost(material, tools));
    harness = started;
    if (ending.signal.aborted) {
      await started.stop(0);
      return;
    }
    turns = startTurns(started);
    state.report({ bootError: null, harnessCapabilities: capabilitiesOf(started.optional) });
    if (draining !== undefined) void turns.drain(0, draining.reason);
    healthChanged();
  };

  const giveAnswer = (id: string, answer: HumanAnswerWire): Answering =>
    broker.answer(id, answer.kind === 'question' ? answer : { ...answer, message: answer.message ?? null });

  const reporter = startReporter({
    document: () => healthDocumentOf(state.facts()),
    report: calls.reportHealth,
    onPromptsWaiting: () => turns?.poke(),
    onAnswers: (answers) => {
      for (const { id, answer } of answers) {
        if (giveAnswer(id, answer) === 'unknown') log.info('an answer came for a request that is not open', { id });
      }
    },
    onAbort: (turnId) => {
      turns?.abort('asked', turnId);
    },
    onRefused: ports.onRefused,
    clock,
    log,
  });
  state.onChange(reporter.changed);
  boot().catch((error: unknown) => {
    log.error('the boot broke', { err: error });
    state.report({ bootError: { category: 'HarnessBoot', message: 'the boot of the session failed' } });
  });

  const close = async (): Promise<void> => {
    ending.abort();
    reporter.stop();
    events.stop();
    relay.closeModels();
    await harness?.stop(HARNESS_STOP_MS);
    await endLeftovers(ports.marker, new Set(), log);
    spool.close();
  };

  /** A push of the environment is a reload of the rules file too. Source: A59, A179. */
  const rulesAgain = async (): Promise<void> => {
    if (harness?.rulesChanged === undefined) return;
    await harness.rulesChanged(await findRulesFile(config.workspaceDir, log));
  };

  /** Waits for a promise, but not longer than the limit. */
  const within = async (limitMs: number, promise: Promise<unknown>): Promise<void> => {
    const { promise: limit, resolve } = Promise.withResolvers<void>();
    const cancel = clock.startTimer(limitMs, resolve);
    await Promise.race([promise, limit]);
    cancel();
  };

  return {
    nudge: () => turns?.poke(),
    abort: (turnId) => {
      const running = turns?.activity().turnId ?? null;
      return running !== null && turns?.abort('asked', turnId) === true ? running : undefined;
    },
    drain: (deadlineMs, reason) => {
      draining = { deadlineMs, reason };
      if (deadlineMs === 0) relay.closeModels();
      const idle = turns === undefined || turns.activity().turnId === null;
      void turns?.drain(deadlineMs, reason).then(() => branch.push(null));
      return idle;
    },
    replaceEnvironment: (revision, environment) => {
      if (revision >= grants.revision) {
        grants = { revision, environment };
        secretsChanged();
        void rulesAgain();
      }
      return grants.revision;
    },
    commandEnvironment: () => commandEnvironment(claim, grants),
    currentTurnId: () => turns?.activity().turnId ?? null,
    standing: (messageId) => turns?.standing(messageId) ?? null,
    verbs: makeRuntimeVerbs({
      harness: () => harness,
      turns: () => turns,
      stored: () => events.flush(VERB_FLUSH_LIMIT_MS),
      secrets: () => [...Object.values(grants.environment), claim.credential, claim.daemonCredential, ports.relayToken],
    }),
    answer: giveAnswer,
    shutDown: async (drainMs, reason) => {
      await turns?.drain(drainMs, 'sandbox');
      await within(PUSH_LIMIT_MS, branch.push(null));
      await events.flush(FLUSH_LIMIT_MS);
      try {
        await calls.bye(reason);
      } catch (error) {
        log.warn('the control plane did not hear the last word', { err: error });
      }
      await close();
    },
    abandon: close,
    lastWords: async () => {
      await turns?.drain(0, 'sandbox');
      await events.flush(FLUSH_LIMIT_MS);
    },
  };
};
