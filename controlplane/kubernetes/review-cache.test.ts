// How long answers count, and how many questions are asked for them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnavailableError } from '#base/errors.ts';
import { makeReviewCache, NEGATIVE_TTL_MS, POSITIVE_TTL_MS } from './review-cache.ts';

const fixture = () => {
  const state = { nowMs: 0, asked: 0 };
  const cache = makeReviewCache<boolean>({ monotonicMs: () => state.nowMs }, (answer) => answer);
  const ask =
    (answer: boolean, tookMs = 0) =>
    async () => {
      state.asked += 1;
      state.nowMs += tookMs;
      return answer;
    };
  return { state, cache, ask };
};

test('a good answer counts for 4.5 s from the question, a refusal for 1 s', async () => {
  const { state, cache, ask } = fixture();
  await cache.answer('a', ask(true, 2_000));
  state.nowMs = POSITIVE_TTL_MS - 1;
  await cache.answer('a', ask(false));
  assert.equal(state.asked, 1);
  state.nowMs = POSITIVE_TTL_MS;
  assert.equal(await cache.answer('a', ask(false)), false);
  assert.equal(state.asked, 2);
  state.nowMs += NEGATIVE_TTL_MS - 1;
  assert.equal(await cache.answer('a', ask(true)), false);
  state.nowMs += 1;
  assert.equal(await cache.answer('a', ask(true)), true);
});

test('callers that come together share one question, also when it fails', async () => {
  const { state, cache } = fixture();
  const gate = Promise.withResolvers<boolean>();
  const ask = () => {
    state.asked += 1;
    return gate.promise;
  };
  const both = Promise.allSettled([cache.answer('a', ask), cache.answer('a', ask)]);
  gate.reject(new Error('down'));
  assert.deepEqual(
    (await both).map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.equal(state.asked, 1);
  assert.equal(await cache.answer('a', async () => true), true);
});

test('an error is not remembered', async () => {
  const { cache, ask } = fixture();
  await assert.rejects(cache.answer('a', async () => Promise.reject(new Error('down'))));
  assert.equal(await cache.answer('a', ask(true)), true);
});

test('a flood of unknown callers is bounded', async () => {
  const { cache } = fixture();
  const gate = Promise.withResolvers<boolean>();
  const calls = Array.from({ length: 100 }, (_, n) => cache.answer(`caller ${n}`, () => gate.promise));
  const settled = Promise.allSettled(calls);
  gate.resolve(false);
  const refused = (await settled).filter((one) => one.status === 'rejected');
  assert.equal(refused.length, 36);
  assert.ok(refused.every(({ reason }) => reason instanceof UnavailableError));
});

test('who asks for a younger answer than the remembered one gets it, and everybody has it from then on', async () => {
  const { state, cache, ask } = fixture();
  await cache.answer('a', ask(true));
  state.nowMs = 1_000;
  await cache.answer('a', ask(false));
  await cache.answer('a', ask(false), 1_001);
  assert.equal(state.asked, 1);
  assert.deepEqual([await cache.answer('a', ask(false), 1_000), await cache.answer('a', ask(true))], [false, false]);
  assert.equal(state.asked, 2);
});
