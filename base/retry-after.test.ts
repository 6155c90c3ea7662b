// How the header `retry-after` is read.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryAfterMs } from './retry-after.ts';

const NOW = Date.UTC(2026, 10, 30, 12, 0, 0);

for (const [header, ms] of [
  ['0', 0],
  ['2', 2_000],
  [' 1.5 ', 1_500],
  ['999999999', 86_400_000],
  ['Mon, 30 Nov 2026 12:00:30 GMT', 30_000],
  ['Mon, 30 Nov 2026 11:00:00 GMT', 0],
  ['-1', undefined],
  ['1e9', 86_400_000],
  ['soon', undefined],
  ['', undefined],
  [null, undefined],
  [undefined, undefined],
] as const) {
  test(`retry-after ${JSON.stringify(header)} is a wait of ${ms} ms`, () => {
    assert.equal(retryAfterMs(header, NOW), ms);
  });
}

test('a date says nothing where nobody knows what time it is', () => {
  assert.equal(retryAfterMs('Mon, 30 Nov 2026 12:00:30 GMT'), undefined);
});
