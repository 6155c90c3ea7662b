// When a status that differs a little is written: gathered for up to 5 s, then at most every 10 s for each object.
// Must not know statuses or requests. Source: K27.
import type { StatusChange } from './controller.ts';

/** Longest time that a minor change waits for a major one. Units: milliseconds. */
export const GATHER_MS = 5_000;
/** Least time between two minor writes of one object. Units: milliseconds. */
export const MINOR_GAP_MS = 10_000;

type State = { sinceMs: number | undefined; wroteMs: number };

/** Decides by key; one per controller. Time is monotonic and given with each call. */
export class MinorWrites {
  readonly #states = new Map<string, State>();

  /** How long to wait before the change may be written: 0 is now. Units: milliseconds. */
  waitMs(key: string, change: Exclude<StatusChange, 'none'>, nowMs: number): number {
    if (change === 'major') return 0;
    const state = this.#states.get(key) ?? { sinceMs: undefined, wroteMs: Number.NEGATIVE_INFINITY };
    state.sinceMs ??= nowMs;
    this.#states.set(key, state);
    return Math.max(0, Math.max(state.sinceMs + GATHER_MS, state.wroteMs + MINOR_GAP_MS) - nowMs);
  }

  /** A status was written, whatever it was. */
  wrote(key: string, nowMs: number): void {
    this.#states.set(key, { sinceMs: undefined, wroteMs: nowMs });
  }

  /** Nothing is left to write. */
  settled(key: string): void {
    const state = this.#states.get(key);
    if (state !== undefined) state.sinceMs = undefined;
  }

  /** The object is gone. */
  forget(key: string): void {
    this.#states.delete(key);
  }
}
