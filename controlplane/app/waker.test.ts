// Waiting for changes by key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '#test/support/manual-clock.ts';
import { makeWaker } from './waker.ts';

const never = new AbortController().signal;

test('a change between the beginning and the wait is not missed', async () => {
  const clock = manualClock();
  const waker = makeWaker(clock);
  const wait = waker.begin(['a', 'b']);
  waker.wake('b');
  await wait.until(60_000, never);
  assert.equal(clock.pending(), 0);
});

test('a change of another key, or before the beginning, wakes nobody; time and signal do', async () => {
  const clock = manualClock();
  const waker = makeWaker(clock);
  waker.wake('a');
  let isOver = false;
  const wait = waker
    .begin(['a'])
    .until(1_000, never)
    .then(() => {
      isOver = true;
    });
  waker.wake('b');
  await clock.advance(999);
  assert.equal(isOver, false);
  await clock.advance(1);
  await wait;
  const controller = new AbortController();
  const aborted = waker.begin(['a']).until(1_000, controller.signal);
  controller.abort();
  await aborted;
  assert.equal(clock.pending(), 0);
});

test('wakeAll ends every wait, also of those who wait for the same key', async () => {
  const waker = makeWaker(manualClock());
  const waits = ['a', 'a', 'b'].map((key) => waker.begin([key]).until(60_000, never));
  waker.wakeAll();
  await Promise.all(waits);
});
