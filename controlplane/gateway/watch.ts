// The time limits of one upstream call: connect and first byte, idle, total. Must not know HTTP.
import type { CancelTimer, Clock } from '#base/clock.ts';

/** Why a call was ended from this side. */
export type CallEnd = 'first_byte' | 'idle' | 'total' | 'client_left';

/** The limits of a provider. Units: milliseconds. */
export type CallLimits = Readonly<{ first_byte_ms: number; idle_ms: number; total_ms: number }>;

/** Watches one call. `signal` fires once, at the first limit that is reached or when the client leaves. */
export type CallWatch = Readonly<{
  signal: AbortSignal;
  /** Bytes came. */
  progress: () => void;
  /** Why the signal fired; undefined while it has not. */
  ended: () => CallEnd | undefined;
  stop: () => void;
}>;

/** Starts the watch. `clientGone`: fires when the client leaves. */
export const watchCall = (clock: Clock, limits: CallLimits, clientGone: AbortSignal): CallWatch => {
  const controller = new AbortController();
  let end: CallEnd | undefined;
  let lastMs: number | undefined;
  let cancelIdle: CancelTimer | undefined;
  const finish = (why: CallEnd): void => {
    if (end !== undefined) return;
    end = why;
    controller.abort();
  };
  const onGone = (): void => finish('client_left');
  const cancelFirst = clock.startTimer(limits.first_byte_ms, () => finish('first_byte'));
  const cancelTotal = clock.startTimer(limits.total_ms, () => finish('total'));
  if (clientGone.aborted) onGone();
  else clientGone.addEventListener('abort', onGone, { once: true });

  // One timer for any number of chunks: it looks how old the last one is and sleeps for the rest.
  const armIdle = (delayMs: number): void => {
    cancelIdle = clock.startTimer(delayMs, () => {
      const quietMs = clock.monotonicMs() - (lastMs ?? 0);
      if (quietMs >= limits.idle_ms) finish('idle');
      else armIdle(limits.idle_ms - quietMs);
    });
  };
  return {
    signal: controller.signal,
    progress: () => {
      const isFirst = lastMs === undefined;
      lastMs = clock.monotonicMs();
      if (!isFirst) return;
      cancelFirst();
      armIdle(limits.idle_ms);
    },
    ended: () => end,
    stop: () => {
      cancelFirst();
      cancelTotal();
      cancelIdle?.();
      clientGone.removeEventListener('abort', onGone);
    },
  };
};
