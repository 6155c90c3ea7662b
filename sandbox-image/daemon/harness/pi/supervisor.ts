// Keeps one thread with Pi running. A thread that cannot be ended is the end of the process. Must not know turns.
// Source: D13, FB10, harness-runtimes §3.5.
import type { BackoffBounds } from '#base/backoff.ts';
import type { Clock } from '#base/clock.ts';
import { keepRunning, type RunningState } from '#base/keep-running.ts';
import type { Logger } from '#base/log.ts';
import type { FromWorker } from './protocol.ts';
import type { PiThread } from './thread.ts';

/** What a thread said when it became ready. */
export type ReadyFacts = Extract<FromWorker, { kind: 'ready' }>;

/** A thread that is ready for turns. `lost` fires when it is gone. */
export type LiveThread = Readonly<{ thread: PiThread; facts: ReadyFacts; lost: AbortSignal }>;

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
  state: () => RunningState;
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
  const { log } = ports;
  let live: LiveThread | undefined;
  let running: PiThread | undefined;
  let isProven = false;

  const kept = keepRunning({
    live: async ({ ready, lost }) => {
      isProven = false;
      const gone = new AbortController();
      const thread = ports.start((facts) => {
        live = { thread, facts, lost: gone.signal };
        log.info('harness is ready', { harness: 'pi', version: facts.version });
        ready();
      });
      running = thread;
      const { reason, stuck } = await thread.ended;
      live = undefined;
      running = undefined;
      // Known before the turn ends of it: the next prompt must find a harness that is down, not one that looks well.
      lost(reason);
      gone.abort();
      return { reason, isProven, giveUp: stuck };
    },
    cleanUp: ports.cleanUp,
    onGiveUp: ports.onStuck,
    onChange: ports.onChange,
    backoff: RESTART_BACKOFF,
    brokenAfter: BROKEN_AFTER,
    maxRestarts: MAX_RESTARTS,
    what: 'the thread of the harness',
    clock: ports.clock,
    random: ports.random,
    log,
  });

  return {
    state: kept.state,
    live: () => live,
    proven: () => {
      isProven = true;
    },
    stop: async () => {
      const { done } = kept.stop();
      running?.end('it was stopped');
      await done;
    },
  };
};
