// A token bucket per subject: so many calls a second, and a burst. Must not know who the subjects are.
import type { Clock } from '#base/clock.ts';

/** What a limiter is made from. Bounds: both numbers from 1. */
export type RateLimitPorts = Readonly<{ clock: Pick<Clock, 'monotonicMs'>; perSecond: number; burst: number }>;

/** Takes one call of a subject: undefined when it may go on, else how long to wait. Units: milliseconds. */
export type TakeCall = (subject: string) => number | undefined;

/** Subjects that are remembered; the one that has not called for longest is forgotten, and starts with a full bucket. */
const MAX_SUBJECTS = 10_000;

/** The order of subjects by their last call is kept to this much, as moving one costs. Units: milliseconds. */
const ORDER_MS = 1_000;

type Bucket = { tokens: number; atMs: number; movedMs: number };

/** A limiter; its memory is that of one replica. Source: 20-control-plane §2. */
export const makeRateLimit = ({ clock, perSecond, burst }: RateLimitPorts): TakeCall => {
  const buckets = new Map<string, Bucket>();
  return (subject) => {
    const nowMs = clock.monotonicMs();
    const bucket = buckets.get(subject) ?? { tokens: burst, atMs: nowMs, movedMs: Number.NEGATIVE_INFINITY };
    bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / 1_000) * perSecond);
    bucket.atMs = nowMs;
    if (nowMs - bucket.movedMs >= ORDER_MS) {
      bucket.movedMs = nowMs;
      buckets.delete(subject);
      buckets.set(subject, bucket);
      const [oldest] = buckets.keys();
      if (buckets.size > MAX_SUBJECTS && oldest !== undefined) buckets.delete(oldest);
    }
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) / perSecond) * 1_000);
    bucket.tokens -= 1;
    return undefined;
  };
};
