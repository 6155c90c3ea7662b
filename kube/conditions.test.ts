// Conditions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Condition, isConditionTrue, setConditions, withCondition } from './conditions.ts';

const old: Condition = {
  type: 'Ready',
  status: 'False',
  reason: 'Starting',
  message: 'pod is pending',
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
};
const now = '2026-01-01T00:05:00Z';

test('K27 the transition time changes only with the status', () => {
  const same = setConditions([old], [{ ...old, reason: 'Pulling', message: 'image' }], 1, now);
  assert.equal(same[0]?.lastTransitionTime, old.lastTransitionTime);
  const changed = setConditions([old], [{ ...old, status: 'True', reason: 'Ready' }], 1, now);
  assert.equal(changed[0]?.lastTransitionTime, now);
});

test('K10 every condition carries the generation it is about, also one that says the same', () => {
  const [stamped] = setConditions([old], [old], 7, now);
  assert.equal(stamped?.observedGeneration, 7);
  assert.equal(isConditionTrue([{ ...old, status: 'True', observedGeneration: 6 }], 'Ready', 7), false);
});

test('a condition nobody speaks of any more is dropped', () => {
  assert.deepEqual(setConditions([old], [], 1, now), []);
});

test('one condition is replaced in its place or added at the end', () => {
  const other = { ...old, type: 'Synced' };
  const replaced = withCondition([old, other], { ...old, status: 'True', reason: 'Ready' }, 2, now);
  assert.deepEqual(
    replaced.map(({ type, status }) => [type, status]),
    [
      ['Ready', 'True'],
      ['Synced', 'False'],
    ],
  );
  assert.deepEqual(withCondition([], old, 1, now).length, 1);
});

test('K11 a message is at most 1024 characters', () => {
  const [long] = setConditions([], [{ ...old, message: 'x'.repeat(5_000) }], 1, now);
  assert.equal(long?.message.length, 1_024);
});
