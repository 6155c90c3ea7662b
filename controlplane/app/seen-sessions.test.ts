// What the cache shows arrives in the database once, whatever fails in between; on a clock moved by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Session } from '#schema/resources/session.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { makeSeenSessions } from './seen-sessions.ts';

const sessionOf = (uid: string) => ({ metadata: { uid } }) as Session;

const fixture = (uids: readonly string[] = []) => {
  const clock = manualClock();
  const cache = new Map(uids.map((uid) => [uid, sessionOf(uid)]));
  const state = { admitted: [] as string[], gone: [] as string[], sweeps: 0, errors: 0, failures: 0 };
  const seen = makeSeenSessions({
    findSessionByUid: (uid) => cache.get(uid),
    listSessions: () => [...cache.values()],
    admitSeen: async (sessions) => {
      if (state.failures > 0) {
        state.failures -= 1;
        throw new Error('down');
      }
      state.admitted.push(...sessions.map(({ metadata }) => metadata.uid));
    },
    objectGone: async (uid) => void state.gone.push(uid),
    sweep: async () => void (state.sweeps += 1),
    clock,
    onError: () => void (state.errors += 1),
  });
  return { clock, cache, state, seen };
};

test('sessions that are there at the start are admitted, then the rest is swept', async () => {
  const { clock, seen, state } = fixture(['a', 'b']);
  seen.start();
  await clock.advance(0);
  assert.deepEqual([state.admitted, state.sweeps], [['a', 'b'], 1]);
});

test('a session is admitted once however often it changes, and its end is told', async () => {
  const { clock, cache, seen, state } = fixture();
  seen.start();
  await clock.advance(0);
  cache.set('a', sessionOf('a'));
  for (let n = 0; n < 5; n += 1) {
    seen.changed('a');
    await clock.advance(30);
  }
  assert.deepEqual(state.admitted, ['a']);
  cache.delete('a');
  seen.changed('a');
  await clock.advance(30);
  assert.deepEqual(state.gone, ['a']);
});

test('what failed is tried again until it worked', async () => {
  const { clock, seen, state } = fixture(['a']);
  state.failures = 2;
  seen.start();
  await clock.advance(0);
  assert.deepEqual([state.admitted, state.errors], [[], 1]);
  await clock.advance(2_000);
  await clock.advance(2_000);
  assert.deepEqual([state.admitted, state.errors], [['a'], 2]);
});

test('nothing happens before the start and after the stop', async () => {
  const { clock, cache, seen, state } = fixture();
  cache.set('a', sessionOf('a'));
  seen.changed('a');
  await clock.advance(10_000);
  assert.deepEqual(state.admitted, []);
  seen.start();
  await seen.stop();
  await clock.advance(10_000);
  assert.deepEqual(state.admitted, []);
  assert.equal(clock.pending(), 0);
});

test('the sweep comes again', async () => {
  const { clock, seen, state } = fixture();
  seen.start();
  await clock.advance(0);
  await clock.advance(600_000);
  assert.equal(state.sweeps, 2);
});
