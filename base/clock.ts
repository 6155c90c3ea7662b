// Time as a port: wall clock, monotonic clock and timers. Must not know what is timed.
// Everything that waits takes a Clock, so that a test can move time by hand.

/** Stops a timer; does nothing when it has fired or was stopped. */
export type CancelTimer = () => void;

/** The clock of a process. Durations are taken from `monotonicMs` only; `nowMs` may jump. Source: FA15. */
export type Clock = Readonly<{
  /** Wall-clock time. Units: milliseconds since 1970. */
  nowMs: () => number;
  /** Time that never jumps and goes on while the process is stopped. Units: milliseconds since an unknown start. */
  monotonicMs: () => number;
  /** Calls `fire` once after `delayMs`, measured monotonically. A timer never keeps the process alive. */
  startTimer: (delayMs: number, fire: () => void) => CancelTimer;
}>;

/** Longest delay that Node accepts for one timer. Units: milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of the machine. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  startTimer: (delayMs, fire) => {
    const timer = setTimeout(fire, Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs`, or at once when `signal` fires: true when the whole time has passed. Never rejects. */
export const sleep = (clock: Clock, delayMs: number, signal?: AbortSignal): Promise<boolean> => {
  if (signal?.aborted === true) return Promise.resolve(false);
  if (delayMs <= 0) return Promise.resolve(true);
  return new Promise((resolve) => {
    const onAbort = () => {
      cancel();
      resolve(false);
    };
    const cancel = clock.startTimer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve(true);
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
};
