// Pi behind the one interface: a supervised thread with the session's conversation in it, prompts as turns.
// Must not know the host beyond its ports, nor Pi. Source: D13, A25, A34, A151, harness-runtimes §3.
import { createHash } from 'node:crypto';
import { constants, existsSync, mkdirSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '#base/clock.ts';
import type { Adapter, Harness, HarnessHealth, HarnessHost, RulesFile, TurnEnd } from '../contract/adapter.ts';
import type { VerbTurn } from '../contract/capabilities.ts';
import { type HostCalls, serveCalls } from './host-calls.ts';
import { findProjectFiles } from './project-files.ts';
import type { ChildSummary, FromWorker, RulesText, TurnTask, WorkerStart } from './protocol.ts';
import { type LiveThread, supervise } from './supervisor.ts';
import { compileCacheEnvironment, type PiThread, startThread, THREAD_LIMITS, type ThreadLimits } from './thread.ts';

/** Limits of the adapter that a test may shorten. */
export type PiLimits = ThreadLimits & Readonly<{ abortLimitMs: number }>;

const DEFAULT_LIMITS: PiLimits = { ...THREAD_LIMITS, abortLimitMs: 10_000 };
const MAX_RULES_BYTES = 262_144;

/**
 * Where the image and a checkout have Pi: the few files that Pi's own command runs. They load in half the time of the package's
 * many modules and give extensions the same packages. Source: docs/decisions/0030.
 */
const PI_PLACES = ['../../../node_modules', '../../../programs/node_modules'].map(
  (folder) => new URL(`${folder}/@earendil-works/pi-coding-agent/dist/bundle/index.js`, import.meta.url),
);

/** URL of Pi's entry; undefined when it is not installed. */
export const piModule = (): URL | undefined => PI_PLACES.find((place) => existsSync(place));

/** Id of the session's own conversation: the same after every restart. Source: A151. */
export const rootIdOf = (uid: string): string => `ses_${createHash('sha256').update(uid).digest('hex').slice(0, 24)}`;

/** The text of the rules file that the host found; null when it is not what the host saw any more. */
const readRules = async (rules: RulesFile | null): Promise<RulesText | null> => {
  if (rules === null) return null;
  try {
    const file = await open(rules.path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      const info = await file.stat();
      if (!info.isFile() || info.size > MAX_RULES_BYTES) return null;
      return { path: rules.path, text: await file.readFile('utf8') };
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
};

const died: TurnEnd = { kind: 'failed', code: 'harness_died', message: 'the harness ended while the turn ran' };

type Active = Readonly<{ turnId: string; resolve: (end: TurnEnd) => void }>;

/** Starts Pi for a host. */
export const startHarness = async (
  host: HarnessHost,
  settings: Readonly<{ limits?: Partial<PiLimits> | undefined; entry?: URL | undefined }> = {},
): Promise<Harness> => {
  const { clock, log, paths, session } = host;
  const limits = { ...DEFAULT_LIMITS, ...settings.limits };
  const rootId = rootIdOf(session.uid);
  const entry = settings.entry ?? new URL('./worker/main.ts', import.meta.url);
  const module = piModule();
  const agentDirectory = join(paths.config, 'agent');
  rmSync(agentDirectory, { recursive: true, force: true });
  for (const folder of [paths.data, agentDirectory]) mkdirSync(folder, { recursive: true });

  let rules = host.rules;
  let rulesText = await readRules(rules);
  let model = session.model?.name ?? null;
  const children = new Map<string, ChildSummary>();
  let active: Active | undefined;
  let calls: HostCalls | undefined;

  const start: Omit<WorkerStart, 'rules'> = {
    piModule: module?.href ?? '',
    rootId,
    workspace: paths.workspace,
    sessionsDirectory: paths.data,
    agentDirectory,
    agent: session.agent,
    agents: session.agents,
    model: session.model,
    models: session.models,
    compactionModel: session.roles?.find(({ role }) => role === 'compaction')?.model ?? null,
    unattended: session.unattended,
    modelBaseUrl: host.relay.modelBaseUrl,
    token: host.relay.token,
    project: findProjectFiles(host.configDirectory, host.packages ?? []),
    skills: host.skills,
    tools: host.tools.specs,
    visibleTools: Object.fromEntries(
      [null, ...session.agents.map(({ name }) => name)].map((name) => [name ?? '', [...host.tools.visibleTo(name)]]),
    ),
  };

  const onMessage = (message: FromWorker, onReady: (facts: Extract<FromWorker, { kind: 'ready' }>) => void): void => {
    if (calls?.receive(message) === true) return;
    switch (message.kind) {
      case 'events':
        for (const event of message.events) host.emit(event);
        return;
      case 'turn-ended':
        supervisor.proven();
        if (active?.turnId === message.turnId) active.resolve(message.end);
        return;
      case 'child':
        children.set(message.child.id, message.child);
        return;
      case 'model':
        model = message.model;
        return;
      case 'log':
        log[message.level](message.message);
        return;
      case 'ready':
        for (const child of message.children) children.set(child.id, child);
        if (message.discarded !== null) log.error(message.discarded);
        onReady(message);
        return;
      default:
        return;
    }
  };

  const supervisor = supervise({
    start: (onReady): PiThread => {
      const thread = startThread({
        entry,
        start: { ...start, rules: rulesText },
        environment: {
          PI_OFFLINE: '1',
          PI_TELEMETRY: '0',
          PI_CODING_AGENT_DIR: agentDirectory,
          HOME: paths.home,
          TMPDIR: paths.temporary,
          PATH: host.searchPath,
          LANG: 'C.UTF-8',
          ...compileCacheEnvironment(),
          [host.marker.name]: host.marker.value,
        },
        limits,
        onMessage: (message) => onMessage(message, onReady),
        output: host.output,
        clock,
      });
      calls = serveCalls(host, thread.send);
      return thread;
    },
    cleanUp: async () => {
      calls?.endAll();
      await host.endLeftovers();
    },
    onStuck: (reason) => host.giveUp?.(reason),
    onChange: host.healthChanged,
    clock,
    random: Math.random,
    log,
  });

  const health = (): HarnessHealth => {
    const { state, error, restarts } = supervisor.state();
    const facts = supervisor.live()?.facts;
    return {
      version: facts?.version ?? null,
      state,
      error,
      sessionId: facts === undefined ? null : rootId,
      details: {
        model,
        extensions: facts?.extensions ?? { loaded: [], failed: start.project.failed },
        agentsMd: rulesText === null ? null : rules,
        restarts,
      },
    };
  };

  /** Waits for the end of a turn: told by the thread, or by its death. */
  const follow = async (live: LiveThread, turn: VerbTurn, task: TurnTask, signal: AbortSignal): Promise<TurnEnd> => {
    const over = new AbortController();
    const { promise, resolve } = Promise.withResolvers<TurnEnd>();
    const onLost = (): void => resolve(signal.aborted ? { kind: 'aborted' } : died);
    const onAbort = (): void => {
      live.thread.send({ kind: 'abort', turnId: turn.turnId });
      void sleep(clock, limits.abortLimitMs, over.signal).then((isLate) => {
        if (!isLate) return;
        log.error('the harness does not end its turn and is ended');
        live.thread.end('it did not end a turn that was aborted');
      });
    };
    active = { turnId: turn.turnId, resolve };
    live.lost.addEventListener('abort', onLost, { once: true });
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      live.thread.send({ kind: 'turn', turn, task });
      if (signal.aborted) onAbort();
      return await promise;
    } finally {
      active = undefined;
      over.abort();
      live.lost.removeEventListener('abort', onLost);
      signal.removeEventListener('abort', onAbort);
    }
  };

  const run = async (turn: VerbTurn, task: TurnTask, signal: AbortSignal): Promise<TurnEnd> => {
    const live = supervisor.live();
    if (live === undefined) return { ...died, message: 'the harness is not running' };
    return signal.aborted ? { kind: 'aborted' } : follow(live, turn, task, signal);
  };

  return {
    health,
    submit: ({ parts, ...turn }, signal) =>
      run(turn, { kind: 'prompt', text: parts.map(({ text }) => text).join('\n\n') }, signal),
    rulesChanged: async (next) => {
      const text = await readRules(next);
      rules = next;
      rulesText = text;
      supervisor.live()?.thread.send({ kind: 'rules', rules: text });
      host.healthChanged();
    },
    stop: () => supervisor.stop(),
    optional: {
      children: async () => [...children.values()].map(({ id, title }) => ({ threadId: id, title })),
      compact: (turn, signal) => run(turn, { kind: 'compact' }, signal),
      commands: {
        list: async () =>
          (supervisor.live()?.facts.commands ?? []).map(({ name, description }) => ({
            name,
            description: description === '' ? null : description,
            source: 'project',
          })),
        run: (turn, name, text, signal) => run(turn, { kind: 'command', name, arguments: text }, signal),
      },
    },
  };
};

/** The experimental harness. */
export const piAdapter: Adapter = { id: 'pi', start: (host) => startHarness(host) };
