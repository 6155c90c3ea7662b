// When a Session sleeps because its budget is used up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod, aSession, aSessionFact, observed, podUid } from '#test/support/session-fixtures.ts';
import { intentOf } from './lifecycle.ts';

const idle = { state: 'Idle', since: '2026-11-30T12:00:00Z', turnId: null } as const;
const working = { ...idle, state: 'Working', turnId: 't1' } as const;
const limits = { budgetMicroUSD: 5, onReached: 'Suspend' } as const;

const intent = (changes: Parameters<typeof aSessionFact>[1], spec: Parameters<typeof aSession>[0] = { limits }) => {
  const pod = aPod();
  return intentOf(observed({ session: aSession(spec), fact: aSessionFact(podUid(1), changes) }), pod);
};

test('§4 a Session whose budget is used up sleeps when its turn has ended and limits.onReached is Suspend', () => {
  assert.deepEqual(intent({ budgetReached: true, activity: idle }), { kind: 'suspend', reason: 'Budget' });
  assert.deepEqual(intent({ budgetReached: true, activity: working }), { kind: 'run' });
  assert.deepEqual(intent({ budgetReached: false, activity: idle }), { kind: 'run' });
  const fails = { limits: { ...limits, onReached: 'Fail' } } as const;
  assert.deepEqual(intent({ budgetReached: true, activity: idle }, fails), { kind: 'run' });
});

test('§4 what is said of another pod lets no Session sleep', () => {
  const fact = aSessionFact(podUid(2), { budgetReached: true, activity: idle });
  assert.deepEqual(intentOf(observed({ session: aSession({ limits }), fact }), aPod()), { kind: 'run' });
});
