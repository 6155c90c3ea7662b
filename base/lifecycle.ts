// Starts the parts of a process in order and stops them in reverse, each within a time limit.
// Must not know what the parts are; only main.ts does.
import { type Clock, sleep } from './clock.ts';
import { UnavailableError } from './errors.ts';
import type { Logger } from './log.ts';

/** One part of a process. Making it has no effect; `start` has, and what it started `stop` ends. */
export type Part = Readonly<{
  name: string;
  start: (signal: AbortSignal) => Promise<void> | void;
  stop?: (() => Promise<void> | void) | undefined;
  /** Units: milliseconds; 60_000 when absent. */
  startLimitMs?: number | undefined;
  /** Units: milliseconds; 10_000 when absent. */
  stopLimitMs?: number | undefined;
}>;

/** What a lifecycle needs. `onSignal` calls back once for SIGTERM or SIGINT and gives back how to stop listening. */
export type LifecyclePorts = Readonly<{
  clock: Clock;
  log: Logger;
  onSignal: (call: (name: string) => void) => () => void;
}>;

const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 10_000;

/** True when the work ended in time. */
const within = async (clock: Clock, limitMs: number, work: Promise<void>): Promise<boolean> => {
  const ended = new AbortController();
  const finished = work.finally(() => ended.abort());
  finished.catch(() => undefined);
  const late = sleep(clock, limitMs, ended.signal);
  return Promise.race([finished.then(() => true), late.then((isLate) => (isLate ? false : finished.then(() => true)))]);
};

/** The signals of this process as `onSignal`. */
export const processSignals: LifecyclePorts['onSignal'] = (call) => {
  const names = ['SIGTERM', 'SIGINT'] as const;
  for (const name of names) process.on(name, call);
  return () => {
    for (const name of names) process.off(name, call);
  };
};

/**
 * Runs the parts until a signal comes, or `fail` (given to `parts`) is called, or a start fails. Gives back the exit
 * code: 0 after a signal, 1 otherwise. Every part that began to start is stopped, in reverse; errors are logged.
 */
export const runParts = async (
  ports: LifecyclePorts,
  parts: (fail: (reason: string) => void) => readonly Part[],
): Promise<number> => {
  const { clock, log } = ports;
  const stop = new AbortController();
  const stopped = Promise.withResolvers<number>();
  const finish = (code: number) => {
    stop.abort();
    stopped.resolve(code);
  };
  const ignoreSignals = ports.onSignal((name) => {
    log.info('signal received', { signal: name });
    finish(0);
  });
  const begun: Part[] = [];
  try {
    for (const part of parts((reason) => {
      log.error('process ends', { reason });
      finish(1);
    })) {
      if (stop.signal.aborted) break;
      begun.push(part);
      const limitMs = part.startLimitMs ?? START_LIMIT_MS;
      const inTime = await within(clock, limitMs, (async () => part.start(stop.signal))());
      if (!inTime) throw new UnavailableError('timed_out', `${part.name} did not start within ${limitMs} ms`);
    }
    if (!stop.signal.aborted) log.info('started');
  } catch (error) {
    if (!stop.signal.aborted) log.error('start failed', { part: begun.at(-1)?.name, err: error });
    finish(1);
  }
  const code = await stopped.promise;
  for (const part of begun.reverse()) {
    try {
      const inTime = await within(clock, part.stopLimitMs ?? STOP_LIMIT_MS, (async () => part.stop?.())());
      if (!inTime) log.error('a part did not stop in time', { part: part.name });
    } catch (error) {
      log.error('a part failed to stop', { part: part.name, err: error });
    }
  }
  ignoreSignals();
  log.info('stopped');
  return code;
};
