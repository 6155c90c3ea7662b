// Which key of a provider's pool a call takes, and which ones have to rest. An explicit pool never borrows from another.
// Must not know how keys are stored or sent. Source: A217.
import type { Clock } from '#base/clock.ts';

/** One key. `id` may be shown, `secret` never. */
export type PoolKey = Readonly<{ id: string; secret: string }>;

/** Longest rest of a key, and its rest when the provider names none. Units: milliseconds. Source: A217. */
export const MAX_COOL_DOWN_MS = 60_000;
const DEFAULT_COOL_DOWN_MS = 5_000;
/** Pools that are remembered. */
const MAX_POOLS = 2_000;

/** The keys that rest, over all pools. */
export type KeyPools = Readonly<{
  /**
   * The keys of a pool that may be tried now, in order. A subject keeps its first key while that one serves, so that a
   * cache of prompts at the provider is used.
   */
  usable: (pool: string, keys: readonly PoolKey[], subject: string) => readonly PoolKey[];
  /** Lets a key rest; at most 60 s, whatever the provider asks for. */
  rest: (pool: string, keyId: string, askedMs: number | undefined) => void;
  /** Time until the first key of a pool may be tried again; 0 when one may now. Units: milliseconds. */
  waitMs: (pool: string, keys: readonly PoolKey[]) => number;
  /** How many keys of each pool rest now; pools without any are there with 0 once one rested. */
  resting: () => ReadonlyMap<string, number>;
}>;

const startOf = (subject: string, count: number): number => {
  let sum = 0;
  for (let at = 0; at < subject.length; at += 1) sum = (sum * 31 + subject.charCodeAt(at)) >>> 0;
  return sum % count;
};

/** Makes the pools; their memory is that of one replica. */
export const makeKeyPools = (clock: Pick<Clock, 'monotonicMs'>): KeyPools => {
  const until = new Map<string, Map<string, number>>();
  const restMs = (pool: string, keyId: string): number =>
    Math.max(0, (until.get(pool)?.get(keyId) ?? 0) - clock.monotonicMs());
  return {
    usable: (pool, keys, subject) => {
      if (keys.length < 2) return until.has(pool) ? keys.filter(({ id }) => restMs(pool, id) === 0) : keys;
      const start = startOf(subject, keys.length);
      const ordered = [...keys.slice(start), ...keys.slice(0, start)];
      return until.has(pool) ? ordered.filter(({ id }) => restMs(pool, id) === 0) : ordered;
    },
    rest: (pool, keyId, askedMs) => {
      const restedMs = Math.min(Math.max(askedMs ?? DEFAULT_COOL_DOWN_MS, 0), MAX_COOL_DOWN_MS);
      const keys = until.get(pool) ?? new Map<string, number>();
      keys.set(keyId, clock.monotonicMs() + restedMs);
      until.set(pool, keys);
      const [oldest] = until.keys();
      if (until.size > MAX_POOLS && oldest !== undefined) until.delete(oldest);
    },
    waitMs: (pool, keys) => Math.min(...keys.map(({ id }) => restMs(pool, id)), MAX_COOL_DOWN_MS),
    resting: () => {
      const counts = new Map<string, number>();
      for (const [pool, keys] of until) {
        for (const keyId of keys.keys()) if (restMs(pool, keyId) === 0) keys.delete(keyId);
        counts.set(pool, keys.size);
        if (keys.size === 0) until.delete(pool);
      }
      return counts;
    },
  };
};
