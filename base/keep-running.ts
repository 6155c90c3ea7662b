// Keeps one thing running that may end at any time: start, ready, again after an end with a growing pause, given up, stopped.
// Must not know what runs.
//
//   starting --ready--> ok --end--> down --pause--> starting; after some ends in a row: error, and it is still tried again
import { type BackoffBounds, backoffMs } from './backoff.ts';
import { type Clock, sleep } from './clock.ts';
import type { Logger } from './log.ts';

/** How it is. `error`: why the life before ended; null in `ok` and after a stop. */
export type RunningState = Readonly<{
  state: 'starting' | 'ok' | 'down' | 'error';
  error: string | null;
  restarts: number;
}>;

/** How one life ended. `isProven`: it did what it is for, so that a new count of failures begins. `giveUp`: nothing can start again. */
export type LifeEnd = Readonly<{ reason: string; isProven: boolean; giveUp?: boolean }>;

/** What a life tells. `ready`: it works. `lost`: it works no more, whatever is still to be done until its end. */
export type LifeCalls = Readonly<{ ready: () => void; lost: (reason: string) => void; stopping: AbortSignal }>;

/** What it is made from. */
export type KeepRunningPorts = Readonly<{
  /** One life from start to end. A rejection is an end of a life that proved nothing. */
  live: (calls: LifeCalls) => Promise<LifeEnd>;
  /** After each life; resolves when nothing of it is left. */
  cleanUp: () => Promise<void>;
  /** Told once when no further life is started, and why. */
  onGiveUp: (reason: string) => void;
  onChange: () => void;
  backoff: BackoffBounds;
  /** Ends in a row after which it counts as broken; it is still tried again. */
  brokenAfter: number;
  /** Restarts after which it is given up. */
  maxRestarts: number;
  /** For the log. */
  what: string;
  clock: Clock;
  random: () => number;
  log: Logger;
}>;

/** What is kept running. */
export type KeptRunning = Readonly<{
  state: () => RunningState;
  /** No further life is started; whoever stops ends the one that runs. Resolves when it is over. */
  stop: () => Readonly<{ done: Promise<void> }>;
}>;

/** Starts at once. */
export const keepRunning = (ports: KeepRunningPorts): KeptRunning => {
  const { clock, log, what } = ports;
  const stopping = new AbortController();
  let current: RunningState = { state: 'starting', error: null, restarts: 0 };

  const become = (state: RunningState['state'], error: string | null): void => {
    current = { ...current, state, error };
    ports.onChange();
  };

  const live = async (): Promise<LifeEnd> => {
    try {
      return await ports.live({
        ready: () => become('ok', null),
        lost: (reason) => become('down', reason),
        stopping: stopping.signal,
      });
    } catch (error) {
      if (!stopping.signal.aborted) log.error(`${what} did not start`, { err: error });
      return { reason: error instanceof Error ? error.message : String(error), isProven: false };
    }
  };

  const giveUp = (why: string, reason: string): void => {
    log.error(`${what} is given up`, { why, reason });
    become('down', reason);
    ports.onGiveUp(`${why}: ${reason}`);
  };

  const loop = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      const { reason, isProven, giveUp: isLast = false } = await live();
      await ports.cleanUp();
      if (isLast) return giveUp(`${what} cannot be ended`, reason);
      if (stopping.signal.aborted) break;
      failures = isProven ? 1 : failures + 1;
      log.warn(`${what} ended`, { reason, failures });
      current = { ...current, restarts: current.restarts + 1 };
      if (current.restarts > ports.maxRestarts) {
        return giveUp(`${what} was replaced ${ports.maxRestarts} times, the last time`, reason);
      }
      become(failures >= ports.brokenAfter ? 'error' : 'down', reason);
      await sleep(clock, backoffMs(ports.backoff, failures, ports.random), stopping.signal);
      if (!stopping.signal.aborted && failures < ports.brokenAfter) become('starting', reason);
    }
    become('down', null);
  };
  const done = loop().catch((error: unknown) => log.error('what keeps things running broke', { what, err: error }));

  return {
    state: () => current,
    stop: () => {
      stopping.abort();
      return { done };
    },
  };
};
