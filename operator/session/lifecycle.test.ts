// When a Session sleeps because its budget is used up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod, aSession, aSessionFact, observed, podUid } from '#test/support/session-fixtures.ts';
import { intentOf } from './lifecycle.ts';
import { planSession } from './plan.ts';

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

/** A Session without a pod that sleeps, for its budget if nothing else is said, and what is known of it. */
const asleep = (
  changes: Parameters<typeof aSessionFact>[1],
  spec: Parameters<typeof aSession>[0] = { limits },
  slept: 'Budget' | 'Idle' = 'Budget',
) =>
  observed({
    session: aSession(spec, { status: { suspension: { reason: slept, since: '2026-11-30T12:00:00Z' } } }),
    fact: aSessionFact(podUid(1), changes),
  });

test('§4 a prompt, a start or a restart wakes no Session while its budget is used up: it stays suspended, with the reason', () => {
  for (const o of [
    asleep({ budgetReached: true, wanted: true }),
    asleep({ budgetReached: true }, { limits, restartToken: 'now' }),
  ]) {
    assert.deepEqual(intentOf(o, undefined), { kind: 'suspend', reason: 'Budget' });
    const status = planSession(o).status ?? assert.fail('no status');
    assert.equal(status.phase, 'Suspended');
    const reasonOf = (type: string) => status.conditions?.find((condition) => condition.type === type)?.reason;
    assert.equal(reasonOf('Suspended'), 'Budget');
    assert.equal(reasonOf('Ready'), 'BudgetReached');
  }
  assert.deepEqual(intentOf(asleep({ budgetReached: false, wanted: true }), undefined), { kind: 'run' });
});

test('§4 a Session that slept for another reason when its budget was used up sleeps for the budget then', () => {
  const o = asleep({ budgetReached: true, wanted: true }, { limits }, 'Idle');
  assert.deepEqual(intentOf(o, undefined), { kind: 'suspend', reason: 'Budget' });
});
