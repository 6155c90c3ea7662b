// How long a model call waits before it is made again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wordError } from './error-wording.ts';
import { MOST_TRIES, waitBeforeTry } from './model-tries.ts';

const failure = (status: number, retryAfter?: string) => wordError({ status, body: '', retryAfter });

test('waits grow from 2 s to 30 s, and end', () => {
  const waits = [1, 2, 3, 4, 5, 6].map((tries) => waitBeforeTry(failure(503), tries));
  assert.deepEqual(waits, [2_000, 4_000, 8_000, 16_000, 30_000, undefined]);
  assert.equal(MOST_TRIES, 6);
});

test('what the provider asks for is waited for, and 30 s at most', () => {
  assert.equal(waitBeforeTry(failure(429, '7'), 1), 7_000);
  assert.equal(waitBeforeTry(failure(429, '86400'), 1), 30_000);
});

test('a final error is final', () => {
  for (const status of [400, 401, 402, 403, 404, 413]) assert.equal(waitBeforeTry(failure(status), 1), undefined);
});
