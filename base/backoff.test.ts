// Bounds of back-off delays.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { backoffMs, QUEUE_BACKOFF, WATCH_BACKOFF } from './backoff.ts';

const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test('K36 a delay is never outside its bounds', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(QUEUE_BACKOFF, WATCH_BACKOFF),
      fc.integer({ min: 1, max: 10_000 }),
      chance,
      (bounds, n, random) => {
        const delayMs = backoffMs(bounds, n, () => random);
        return delayMs >= bounds.baseMs && delayMs <= bounds.maxMs;
      },
    ),
  );
});

test('K36 the ceiling doubles from failure to failure until the longest delay', () => {
  const almost = () => 1 - Number.EPSILON;
  assert.deepEqual(
    [1, 2, 3, 11, 12, 50].map((n) => backoffMs(QUEUE_BACKOFF, n, almost)),
    [500, 1_000, 2_000, 300_000, 300_000, 300_000],
  );
});

test('C3 two processes with different luck wait differently after the same failure', () => {
  assert.notEqual(
    backoffMs(WATCH_BACKOFF, 1, () => 0.1),
    backoffMs(WATCH_BACKOFF, 1, () => 0.9),
  );
});
