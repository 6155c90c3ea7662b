// Keeps one OpenCode server running: its start with proof and warm-up, and its end. Must not know turns.
// Source: harness-runtimes §2.8, §2.9.
import type { BackoffBounds } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { asBeeuniError, UnavailableError } from '#base/errors.ts';
import { keepRunning, type LifeCalls, type RunningState } from '#base/keep-running.ts';
import type { Logger } from '#base/log.ts';
import type { OpencodeClient } from './client.ts';
import { PLUGIN_PROOF } from './plugin-source.ts';
import type { OpencodeProcess } from './process.ts';

/** A server that is ready for turns. `lost` fires when its process is gone. */
export type Server = Readonly<{
  client: OpencodeClient;
  process: OpencodeProcess;
  version: string;
  /** Agents that a prompt may name. */
  primaryAgents: ReadonlySet<string>;
  /** Id of the session's conversation; a fork changes it. */
  sessionId: () => string;
  lost: AbortSignal;
}>;

/** Ports of the supervisor. */
export type SupervisorPorts = Readonly<{
  start: (signal: AbortSignal) => Promise<OpencodeProcess>;
  connect: (process: OpencodeProcess) => OpencodeClient;
  /** Agents that the configuration declares and the server must list. */
  expectedAgents: readonly string[];
  /** The agent of the warm-up command; undefined for the server's own default. */
  agent: string | undefined;
  /** Makes or resumes the session and whatever belongs to it. */
  openSession: (client: OpencodeClient, lost: AbortSignal) => Promise<() => string>;
  endLeftovers: () => Promise<void>;
  onChange: () => void;
  clock: Clock;
  random: () => number;
  log: Logger;
}>;

/** The supervisor of one server. */
export type Supervisor = Readonly<{
  state: () => RunningState;
  /** The ready server, undefined while there is none. */
  server: () => Server | undefined;
  /** Kills the process now; a new one is started. */
  kill: () => Promise<void>;
  stop: (deadlineMs: number) => Promise<void>;
}>;

const RESTART_BACKOFF: BackoffBounds = { baseMs: 500, maxMs: 30_000 };
/** A process that lived for so long starts a new count of failures. Units: milliseconds. */
const STABLE_MS = 60_000;
/** Failures in a row after which the harness counts as broken; it is still tried again. */
const BROKEN_AFTER = 3;
const PROBE_TRY_MS = 2_000;
const PROBE_LIMIT_MS = 120_000;
const WARM_UP_LIMIT_MS = 120_000;

/** Starts supervising at once. */
export const supervise = (ports: SupervisorPorts): Supervisor => {
  const { clock, log } = ports;
  let server: Server | undefined;
  let running: OpencodeProcess | undefined;

  /** Waits until the server lists its agents: a request that comes while it starts is never answered. */
  const probeAgents = async (client: OpencodeClient, lost: AbortSignal) => {
    const begin = clock.monotonicMs();
    for (;;) {
      try {
        return await client.agents(PROBE_TRY_MS);
      } catch (error) {
        if (lost.aborted) throw error;
        if (clock.monotonicMs() - begin > PROBE_LIMIT_MS) throw error;
        // A configuration that OpenCode refuses is not mended by waiting.
        if (asBeeuniError(error)?.code === 'harness_failed' && asBeeuniError(error)?.detail !== undefined) throw error;
        await sleep(clock, 100, lost);
      }
    }
  };

  /**
   * The first command of a process is slow, so one is run before anybody waits for it, in a session of its own. Its
   * output proves that our plug-in is loaded: without it the workspace's code could run in the server.
   */
  const warmUp = async (client: OpencodeClient): Promise<void> => {
    const id = await client.createSession('warm-up');
    const output = await client.shell(id, `printf %s "$${PLUGIN_PROOF}"`, ports.agent, WARM_UP_LIMIT_MS);
    if (output.trim() !== '1')
      throw new UnavailableError('harness_failed', 'opencode has not loaded the plug-in of the daemon');
    await client.deleteSession(id);
  };

  const bringUp = async (process: OpencodeProcess, lost: AbortSignal): Promise<Server> => {
    const client = ports.connect(process);
    const agents = await probeAgents(client, lost);
    const listed = new Set(agents.map((agent) => agent.name));
    const missing = ports.expectedAgents.filter((name) => !listed.has(name));
    if (missing.length > 0) {
      throw new UnavailableError('harness_failed', `opencode does not list the agents ${missing.join(', ')}`);
    }
    const version = await client.version(PROBE_LIMIT_MS);
    await warmUp(client);
    const sessionId = await ports.openSession(client, lost);
    const primaryAgents = new Set(
      agents.filter((agent) => agent.mode !== 'subagent' && !agent.hidden).map((agent) => agent.name),
    );
    return { client, process, version, primaryAgents, sessionId, lost };
  };

  /** One process from start to end; rejects or resolves with why it is gone. */
  const live = async ({ ready, lost, stopping }: LifeCalls): Promise<string> => {
    const gone = new AbortController();
    const process = await ports.start(stopping);
    running = process;
    // Known before a turn ends of it: the next prompt must find a harness that is down, not one that looks well.
    void process.exited.then((reason) => {
      server = undefined;
      lost(reason);
      gone.abort();
    });
    try {
      server = await bringUp(process, gone.signal);
      log.info('harness is ready', { harness: 'opencode', version: server.version, port: process.port });
      ready();
      return await process.exited;
    } catch (error) {
      await process.end(2_000);
      throw error;
    } finally {
      server = undefined;
      running = undefined;
    }
  };

  const kept = keepRunning({
    live: async (calls) => {
      const begin = clock.monotonicMs();
      const reason = await live(calls);
      return { reason, isProven: clock.monotonicMs() - begin > STABLE_MS };
    },
    cleanUp: ports.endLeftovers,
    onGiveUp: () => {},
    onChange: ports.onChange,
    backoff: RESTART_BACKOFF,
    brokenAfter: BROKEN_AFTER,
    maxRestarts: Number.POSITIVE_INFINITY,
    what: 'the harness',
    clock,
    random: ports.random,
    log,
  });

  return {
    state: kept.state,
    server: () => server,
    kill: async () => {
      await running?.end(0);
    },
    stop: async (deadlineMs) => {
      const { done } = kept.stop();
      await running?.end(deadlineMs);
      await done;
    },
  };
};
