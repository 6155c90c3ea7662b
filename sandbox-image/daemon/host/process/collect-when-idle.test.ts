// Memory goes back in pauses: once in each, never while something runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '#test/support/manual-clock.ts';
import { collectWhenIdle, PAUSE_MS } from './collect-when-idle.ts';

test('a pause is used once, a short one and a running turn are left alone', async () => {
  const clock = manualClock();
  let pause: number | undefined;
  let collections = 0;
  collectWhenIdle({
    pause: () => pause,
    collect: () => {
      collections += 1;
    },
    clock,
  });
  await clock.advance(10 * PAUSE_MS);
  assert.equal(collections, 0, 'while something runs');

  pause = clock.nowMs() + 1;
  await clock.advance(PAUSE_MS);
  assert.equal(collections, 0, 'in a pause that has just begun');
  await clock.advance(10 * PAUSE_MS);
  assert.equal(collections, 1, 'in a long pause');

  pause = undefined;
  await clock.advance(PAUSE_MS);
  pause = clock.nowMs();
  await clock.advance(10 * PAUSE_MS);
  assert.equal(collections, 2, 'in the next one');
});
