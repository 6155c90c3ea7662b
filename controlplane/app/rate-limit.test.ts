// The token bucket, on a clock moved by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRateLimit } from './rate-limit.ts';

test('a subject gets its burst, then its rate, and others are not affected', () => {
  let nowMs = 0;
  const take = makeRateLimit({ clock: { monotonicMs: () => nowMs }, perSecond: 10, burst: 3 });
  assert.deepEqual([take('a'), take('a'), take('a')], [undefined, undefined, undefined]);
  assert.equal(take('a'), 100);
  assert.equal(take('b'), undefined);
  nowMs += 100;
  assert.equal(take('a'), undefined);
  assert.equal(take('a'), 100);
  nowMs += 60_000;
  assert.deepEqual([take('a'), take('a'), take('a')], [undefined, undefined, undefined]);
  assert.notEqual(take('a'), undefined);
});

test('a refused call costs nothing, so waiting as told is enough', () => {
  let nowMs = 0;
  const take = makeRateLimit({ clock: { monotonicMs: () => nowMs }, perSecond: 1, burst: 1 });
  take('a');
  for (let n = 0; n < 50; n += 1) take('a');
  nowMs += take('a') ?? 0;
  assert.equal(take('a'), undefined);
});
