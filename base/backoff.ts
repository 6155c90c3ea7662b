// Delays between attempts. Pure: chance is a parameter. Must not know what is attempted.

/** Bounds of a growing delay. Units: milliseconds. */
export type BackoffBounds = Readonly<{ baseMs: number; maxMs: number }>;

/** Back-off of a key in a work queue. Source: K36. */
export const QUEUE_BACKOFF: BackoffBounds = { baseMs: 250, maxMs: 300_000 };

/** Back-off of a watch that ends. Source: C3. */
export const WATCH_BACKOFF: BackoffBounds = { baseMs: 1_000, maxMs: 30_000 };

/** Back-off of one request that is repeated inside a call. Source: C17. */
export const REQUEST_BACKOFF: BackoffBounds = { baseMs: 200, maxMs: 2_000 };

/**
 * Delay before attempt `n + 1` after `n` failures in a row. Units: milliseconds. Bounds: `baseMs` to `maxMs`; n counts
 * from 1; `random` gives 0 (included) to 1 (excluded).
 * Formula: uniform between baseMs and min(maxMs, baseMs * 2^n), so that processes that failed together part.
 */
export const backoffMs = (bounds: BackoffBounds, n: number, random: () => number): number => {
  const ceilingMs = Math.min(bounds.maxMs, bounds.baseMs * 2 ** Math.min(Math.max(n, 1), 40));
  return Math.round(bounds.baseMs + random() * (ceilingMs - bounds.baseMs));
};
