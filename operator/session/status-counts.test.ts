// What a life of a Session adds to the counters.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionStatus } from '#schema/resources/session.ts';
import { SessionWorld } from '#test/support/session-world.ts';
import { type StatusCount, statusCounts } from './status-counts.ts';

const base: SessionStatus = { harness: { id: 'pi', reason: 'default' }, pod: { attempt: 1, uid: 'p1' } };
const at = (second: number) => `2026-11-30T12:00:${String(second).padStart(2, '0')}Z`;
const failure = { category: 'ImagePull', message: 'x', retryable: true, attempts: 1, since: at(9) } as const;

test('§10 a start is counted once, with how long it took', () => {
  const starting: SessionStatus = { ...base, phase: 'Starting', startedAt: at(0) };
  const running: SessionStatus = { ...starting, phase: 'Running', readyAt: at(7) };
  const start: StatusCount = { what: 'start', harness: 'pi', kind: 'cold', result: 'ready', seconds: 7 };
  assert.deepEqual(statusCounts(starting, running), [start]);
  assert.deepEqual(statusCounts(running, running), []);
  const again = { ...running, pod: { attempt: 2, uid: 'p2' }, startedAt: at(20), readyAt: at(22) };
  assert.deepEqual(statusCounts(running, again), [{ ...start, kind: 'resume', seconds: 2 }]);
});

test('§10 a start that fails is a failure and a start, a sandbox that dies is a failure only', () => {
  const starting: SessionStatus = { ...base, phase: 'Starting' };
  const failed: SessionStatus = { ...base, phase: 'Pending', pod: { attempt: 1 }, failure };
  const start = { what: 'start', harness: 'pi', kind: 'cold', result: 'failed', seconds: undefined } as const;
  assert.deepEqual(statusCounts(starting, failed), [{ what: 'failure', category: 'ImagePull' }, start]);
  const died = { ...failed, failure: { ...failure, category: 'DaemonExit' } } as const;
  const running: SessionStatus = { ...base, phase: 'Running', readyAt: at(1) };
  assert.deepEqual(statusCounts(running, { ...died, readyAt: at(1) }), [{ what: 'failure', category: 'DaemonExit' }]);
  const lost = { ...failed, readyAt: at(1), failure: { ...failure, category: 'NodeLost' } } as const;
  assert.deepEqual(statusCounts(running, lost), [
    { what: 'failure', category: 'NodeLost' },
    { what: 'disruption', category: 'NodeLost' },
  ]);
});

test('§10 a suspension and its wake are counted with the reason, the end of a Session is no wake', () => {
  const asleep: SessionStatus = { ...base, phase: 'Suspended', suspension: { reason: 'Idle', since: at(1) } };
  assert.deepEqual(statusCounts({ ...base, phase: 'Running' }, asleep), [{ what: 'suspend', reason: 'Idle' }]);
  assert.deepEqual(statusCounts(asleep, { ...base, phase: 'Pending' }), [{ what: 'wake', reason: 'Idle' }]);
  assert.deepEqual(statusCounts(asleep, { ...base, phase: 'Deleting' }), []);
});

test('§10 a life from creation over suspension to resumption is two starts, one suspension and one wake', () => {
  const world = new SessionWorld();
  const seen: StatusCount[] = [];
  const settle = (): void => {
    const before = world.session?.status;
    world.settle();
    seen.push(...statusCounts(before, world.session?.status ?? {}));
  };
  settle();
  world.edit({ operatingMode: 'Suspended' });
  settle();
  world.edit({ operatingMode: 'Running' });
  settle();
  assert.deepEqual(
    seen.map((count) => (count.what === 'start' ? `${count.kind} ${count.result}` : `${count.what}`)),
    ['cold ready', 'suspend', 'resume ready', 'wake'],
  );
});
