// How an open stream is asked for its right again, on a clock of the test.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BeeuniError, ForbiddenError, LimitError, UnauthenticatedError, UnavailableError } from '#base/errors.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import type { Guard, GuardedCall } from './mount.ts';
import { watchRights } from './watch-rights.ts';

const CALL = {} as GuardedCall;
const away = new UnavailableError('authorizer_unavailable', 'nobody can be asked');

/** A watch over a guard that answers as the test says. */
const watching = (answer: () => BeeuniError | undefined) => {
  const clock = manualClock();
  const lost: BeeuniError[] = [];
  let asked = 0;
  const guard: Guard<string> = {
    authenticate: async () => 'ann',
    authorize: async () => undefined,
    recheck: async () => {
      asked += 1;
      const error = answer();
      if (error !== undefined) throw error;
    },
  };
  const stop = watchRights({ clock }, guard, CALL, (error) => lost.push(error));
  return { clock, lost, stop, asked: () => asked };
};

test('20-control-plane §1 a right that is taken away is noticed within 5 s, once', async () => {
  for (const error of [new ForbiddenError('forbidden', 'no'), new UnauthenticatedError('who?')]) {
    let said: BeeuniError | undefined;
    const { clock, lost, asked } = watching(() => said);
    await clock.advance(60_000);
    assert.deepEqual([lost.length, clock.pending()], [0, 1]);
    said = error;
    await clock.advance(4_500);
    assert.deepEqual(lost, [error]);
    const before = asked();
    await clock.advance(60_000);
    assert.deepEqual([lost.length, asked(), clock.pending()], [1, before, 0]);
  }
});

test('20-control-plane §1 while nobody can be asked a stream goes on for a minute, and ends with 503', async () => {
  let said: BeeuniError | undefined = away;
  const { clock, lost } = watching(() => said);
  await clock.advance(59_000);
  assert.equal(lost.length, 0);
  said = undefined;
  await clock.advance(4_000);
  said = away;
  await clock.advance(55_000);
  assert.equal(lost.length, 0, 'the minute began anew');
  await clock.advance(10_000);
  assert.deepEqual(lost, [away]);
});

test('neither too many calls nor a fault of ours ends a stream, and a watch that was stopped asks no more', async () => {
  const errors = [new LimitError('rate_limited', 'too many'), new TypeError('a bug') as unknown as BeeuniError];
  let count = 0;
  const { clock, lost, stop, asked } = watching(() => errors[(count += 1) % 2]);
  await clock.advance(30_000);
  assert.deepEqual([lost.length, asked() > 5], [0, true]);
  stop();
  const before = asked();
  await clock.advance(30_000);
  assert.deepEqual([asked(), clock.pending()], [before, 0]);
});
