// Gives memory back in the pauses of a session: a collection of everything, once in each pause. V8 collects only while memory
// is asked for, so what the start and a turn leave would stay for as long as the session sleeps. Must not know turns.
// Source: docs/decisions/0054.
import type { Clock } from '#base/clock.ts';

/** How long a pause is before it is used: whoever writes the next prompt at once does not wait for us. Units: milliseconds. */
export const PAUSE_MS = 2_000;

/** Ports. `pause`: since when nothing runs (wall clock, milliseconds), or undefined while something does. */
export type CollectorPorts = Readonly<{
  pause: () => number | undefined;
  collect: () => void;
  clock: Clock;
}>;

/** Watches for pauses until the process ends. */
export const collectWhenIdle = ({ pause, collect, clock }: CollectorPorts): void => {
  let collectedFor: number | undefined;
  const look = (): void => {
    const since = pause();
    if (since !== undefined && since !== collectedFor && clock.nowMs() - since >= PAUSE_MS) {
      collectedFor = since;
      collect();
    }
    clock.startTimer(PAUSE_MS, look);
  };
  look();
};
