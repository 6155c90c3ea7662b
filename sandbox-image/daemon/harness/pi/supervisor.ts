// Keeps one thread with Pi running: start, ready, restart after an end with a growing pause, stop. A thread that cannot be
// ended is the end of the process. Must not know turns. States as of the other harness: starting, ok, down, error.
// Source: D13, FB10, harness-runtimes §3.5.
import { type BackoffBounds, backoffMs } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { FromWorker } from './protocol.ts';
import type { PiThread } from './thread.ts';

/** What a thread said when it became ready. */
export type ReadyFacts = Extract<FromWorker, { kind: 'ready' }>;

/** A thread that is ready for turns. `lost` fires when it is gone. */
export type LiveThread = Readonly<{ thread: PiThread; facts: ReadyFacts; lost: AbortSignal }>;

/** State as health tells it. */
export type SupervisorState = Readonly<{
  state: 'starting' | 'ok' | 'down' | 'error';
  error: string | null;
  restarts: number;
}>;

/** Ports of the supervisor. */
export type SupervisorPorts = Readonly<{
  /** Starts a thread; everything but `ready` goes to whoever made it. */
  start: (onReady: (facts: ReadyFacts) => void) => PiThread;
  /** A thread ended; resolves when nothing of it is left. */
  cleanUp: () => Promise<void>;
  /** The thread cannot be ended. */
  onStuck: (reason: string) => void;
  onChange: () => void;
  clock: Clock;
  random: () => number;
  log: Logger;
}>;

/** The supervisor of one thread at a time. */
export type Supervisor = Readonly<{
  state: () => SupervisorState;
  live: () => LiveThread | undefined;
  /** The thread did what it is for: its end begins a new count of failures. */
  proven: () => void;
  stop: () => Promise<void>;
}>;

const RESTART_BACKOFF: BackoffBounds = { baseMs: 250, maxMs: 30_000 };
const BROKEN_AFTER = 5;
/** Each thread leaves some memory behind (measured: 5 MB), so a process that had so many is replaced. */
const MAX_RESTARTS = 40;

/** Starts supervising. */
export const supervise = (ports: SupervisorPorts): Supervisor => {
  const { clock, log } = ports;
  const stopping = new AbortController();
  let current: SupervisorState = { state: 'starting', error: null, restarts: 0 };
  let live: LiveThread | undefined;
  let running: PiThread | undefined;
  let isProven = false;

  const become = (state: SupervisorState['state'], error: string | null): void => {
    current = { ...current, state, error };
    ports.onChange();
  };

  const loop = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      isProven = false;
      const lost = new AbortController();
      const thread = ports.start((facts) => {
        live = { thread, facts, lost: lost.signal };
        log.info('harness is ready', { harness: 'pi', version: facts.version });
        become('ok', null);
      });
      running = thread;
      const { reason, stuck } = await thread.ended;
      live = undefined;
      running = undefined;
      if (stuck) become('down', reason);
      lost.abort();
      await ports.cleanUp();
      if (stuck) {
        log.error('the thread of the harness cannot be ended', { reason });
        ports.onStuck(`the thread of the harness cannot be ended: ${reason}`);
        return;
      }
      if (stopping.signal.aborted) break;
      failures = isProven ? 1 : failures + 1;
      log.warn('the harness ended', { reason, failures });
      current = { ...current, restarts: current.restarts + 1 };
      if (current.restarts > MAX_RESTARTS) {
        become('down', reason);
        ports.onStuck(`the thread of the harness was replaced ${MAX_RESTARTS} times; the last time: ${reason}`);
        return;
      }
      become(failures >= BROKEN_AFTER ? 'error' : 'down', reason);
      await sleep(clock, backoffMs(RESTART_BACKOFF, failures, ports.random), stopping.signal);
      if (!stopping.signal.aborted && failures < BROKEN_AFTER) become('starting', reason);
    }
    become('down', null);
  };
  const done = loop().catch((error: unknown) => log.error('the supervisor broke', { err: error }));

  return {
    state: () => current,
    live: () => live,
    proven: () => {
      isProven = true;
    },
    stop: async () => {
      stopping.abort();
      running?.end('it was stopped');
      await done;
    },
  };
};
