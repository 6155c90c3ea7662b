// A token bucket per subject: so many calls a second, and a burst. Must not know who the subjects are.
import type { Clock } from '#base/clock.ts';

/** What a limiter is made from. Bounds: both numbers from 1. */
export type RateLimitPorts = Readonly<{ clock: Pick<Clock, 'monotonicMs'>; perSecond: number; burst: number }>;

/** Takes one call of a subject: undefined when it may go on, else how long to wait. Units: milliseconds. */
export type TakeCall = (subject: string) => number | undefined;

/** Subjects that are remembered; the one that has not called for longest is forgotten, and starts with a full bucket. */
const MAX_SUBJECTS = 10_000;

/** A limiter; its memory is that of one replica. Source: 20-control-plane §2. */
export const makeRateLimit = ({ clock, perSecond, burst }: RateLimitPorts): TakeCall => {
  const buckets = new Map<string, Readonly<{ tokens: number; atMs: number }>>();
  return (subject) => {
    const nowMs = clock.monotonicMs();
    const known = buckets.get(subject);
    const tokens =
      known === undefined ? burst : Math.min(burst, known.tokens + ((nowMs - known.atMs) / 1_000) * perSecond);
    const allowed = tokens >= 1;
    buckets.delete(subject);
    buckets.set(subject, { tokens: allowed ? tokens - 1 : tokens, atMs: nowMs });
    const [oldest] = buckets.keys();
    if (buckets.size > MAX_SUBJECTS && oldest !== undefined) buckets.delete(oldest);
    return allowed ? undefined : Math.ceil(((1 - tokens) / perSecond) * 1_000);
  };
};
