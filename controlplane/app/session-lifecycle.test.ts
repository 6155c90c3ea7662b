// Stops, ends and sweeps over made-up ports.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '#test/support/manual-clock.ts';
import { makeLifecycle } from './session-lifecycle.ts';
import type { Fencing } from './session-records.ts';

const bench = (fencing: Fencing, drained: { idle: boolean } | 'unreachable' = { idle: true }) => {
  const calls: string[] = [];
  const stored = Array.from({ length: 1_100 }, (_, index) => `s${String(index).padStart(5, '0')}`);
  const lifecycle = makeLifecycle({
    fence: async (uid, podUid, turn) => {
      calls.push(`fence ${uid} ${podUid} ${turn}`);
      return fencing;
    },
    podGone: async (uid, podUid) => void calls.push(`gone ${uid} ${podUid}`),
    close: async (uid) => void calls.push(`close ${uid}`),
    remove: async (uid) => {
      calls.push(`remove ${uid}`);
      stored.splice(stored.indexOf(uid), 1);
    },
    listStored: async (after, limit) => stored.filter((uid) => uid > after).slice(0, limit),
    exists: (uid) => !uid.endsWith('7'),
    drain: async (uid, turn, deadlineMs) => {
      calls.push(`drain ${uid} ${turn} ${deadlineMs}`);
      return drained === 'unreachable' ? undefined : drained;
    },
    onRevoked: (uid) => calls.push(`forget ${uid}`),
    clock: manualClock(),
  });
  const stop = (turn: 'none' | 'wait' | 'abort') =>
    lifecycle.stop({ uid: 's', podUid: 'p', turn, deadlineSeconds: 60 });
  return { lifecycle, calls, stored, stop };
};

test('10-kubernetes §6 a stop with turn none never touches the daemon: it is stopped or not idle', async () => {
  const idle = bench({ state: 'fenced', openTurnId: undefined });
  assert.equal(await idle.stop('none'), 'stopped');
  assert.deepEqual(idle.calls, ['fence s p none']);
  await assert.rejects(bench({ state: 'working' }).stop('none'), { code: 'not_idle' });
});

test('a stop is stopped only when the turn has its terminal event and the daemon is idle', async () => {
  const open: Fencing = { state: 'fenced', openTurnId: 't1' };
  const ended: Fencing = { state: 'fenced', openTurnId: undefined };
  assert.equal(await bench(open, { idle: true }).stop('wait'), 'draining');
  assert.equal(await bench(ended, { idle: false }).stop('abort'), 'draining');
  const done = bench(ended, { idle: true });
  assert.equal(await done.stop('abort'), 'stopped');
  assert.deepEqual(done.calls, ['fence s p abort', 'drain s abort 60000']);
});

test('a daemon that cannot be reached does not hold up a stop without a turn', async () => {
  const lifecycle = bench({ state: 'fenced', openTurnId: undefined }, 'unreachable');
  assert.equal(await lifecycle.stop('wait'), 'stopped');
});

test('whatever ends credentials also drops what is remembered of them', async () => {
  const { lifecycle, calls } = bench({ state: 'working' });
  await lifecycle.podGone('s', 'p');
  await lifecycle.close('s');
  await lifecycle.objectGone('s');
  assert.deepEqual(calls, ['gone s p', 'forget s', 'close s', 'forget s', 'remove s', 'forget s']);
});

test('a sweep removes exactly the sessions that the cache does not have, over all pages', async () => {
  const { lifecycle, stored } = bench({ state: 'working' });
  assert.equal(await lifecycle.sweep(), 110);
  assert.equal(stored.length, 990);
  assert.ok(stored.every((uid) => !uid.endsWith('7')));
  assert.equal(await lifecycle.sweep(), 0);
});
