// A clock that a test moves by hand. Must not know what is timed.
import type { Clock } from '#base/clock.ts';

/** A clock whose time stands still until `advance` is called. */
export type ManualClock = Clock &
  Readonly<{
    /** Moves both clocks and fires due timers in order, letting promises settle in between. Units: milliseconds. */
    advance: (byMs: number) => Promise<void>;
    /** Moves the wall clock only, as an administrator or NTP does. Units: milliseconds. */
    jumpWall: (byMs: number) => void;
    /** Timers that have not fired. */
    pending: () => number;
  }>;

type Timer = { dueMs: number; order: number; fire: () => void };

/** Lets everything that is ready run: promises, and the sockets' callbacks of one turn. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** A manual clock. `startMs` is its wall time. Units: milliseconds since 1970. */
export const manualClock = (startMs = Date.UTC(2026, 0, 1)): ManualClock => {
  const timers = new Set<Timer>();
  let monotonicMs = 1_000;
  let wallOffsetMs = startMs - monotonicMs;
  let order = 0;
  return {
    nowMs: () => monotonicMs + wallOffsetMs,
    monotonicMs: () => monotonicMs,
    startTimer: (delayMs, fire) => {
      order += 1;
      const timer: Timer = { dueMs: monotonicMs + Math.max(0, delayMs), order, fire };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance: async (byMs) => {
      const endMs = monotonicMs + byMs;
      await settle();
      for (;;) {
        const [next] = [...timers]
          .filter(({ dueMs }) => dueMs <= endMs)
          .sort((a, b) => a.dueMs - b.dueMs || a.order - b.order);
        if (next === undefined) break;
        timers.delete(next);
        monotonicMs = Math.max(monotonicMs, next.dueMs);
        next.fire();
        await settle();
      }
      monotonicMs = Math.max(monotonicMs, endMs);
      await settle();
    },
    jumpWall: (byMs) => {
      wallOffsetMs += byMs;
    },
    pending: () => timers.size,
  };
};
