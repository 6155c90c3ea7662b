// The time limits of one upstream call: connect and first byte, idle, total. Must not know HTTP.
import type { CancelTimer, Clock } from '#base/clock.ts';

/** Why a call was ended from this side. */
export type CallEnd = 'first_byte' | 'idle' | 'total' | 'client_left';

/** The limits of a provider. Units: milliseconds. */
export type CallLimits = Readonly<{ first_byte_ms: number; idle_ms: number; total_ms: number }>;

/** Watches one call. */
export type CallWatch = Readonly<{
  /** Bytes came. */
  progress: () => void;
  /** Ends the call for a reason of its own; the first reason stays. */
  end: (why: CallEnd) => void;
  /** Why the call was ended; undefined while it was not. */
  ended: () => CallEnd | undefined;
  stop: () => void;
}>;

/** Starts the watch; `onEnd` runs once, at the first limit that is reached. One timer serves any number of chunks. */
export const watchCall = (clock: Clock, limits: CallLimits, onEnd: (why: CallEnd) => void): CallWatch => {
  const startedMs = clock.monotonicMs();
  let end: CallEnd | undefined;
  let lastMs: number | undefined;
  let cancel: CancelTimer | undefined;
  const stop = (): void => {
    cancel?.();
    cancel = undefined;
  };
  const finish = (why: CallEnd): void => {
    if (end !== undefined) return;
    end = why;
    stop();
    onEnd(why);
  };
  const arm = (): void => {
    stop();
    const nowMs = clock.monotonicMs();
    const totalMs = startedMs + limits.total_ms - nowMs;
    const quietMs = lastMs === undefined ? startedMs + limits.first_byte_ms - nowMs : lastMs + limits.idle_ms - nowMs;
    if (totalMs <= 0) return finish('total');
    if (quietMs <= 0) return finish(lastMs === undefined ? 'first_byte' : 'idle');
    cancel = clock.startTimer(Math.min(totalMs, quietMs), arm);
  };
  arm();
  return {
    progress: () => {
      const isFirst = lastMs === undefined;
      lastMs = clock.monotonicMs();
      if (isFirst && end === undefined) arm();
    },
    end: finish,
    ended: () => end,
    stop,
  };
};
