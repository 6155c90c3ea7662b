// The rule of the one automatic re-prompt.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { turnErrorCode, turnOutcome } from '#schema/events/envelope.ts';
import type { EndedTurn } from './ports.ts';
import { decideTurnEnd } from './turn-end.ts';

const ended = (changes: Partial<EndedTurn>): EndedTurn => ({
  outcome: 'Succeeded',
  code: null,
  message: null,
  abortAsked: false,
  attempt: 1,
  harness: 'pi',
  startedAt: null,
  endedAt: '2026-11-30T12:00:00Z',
  ...changes,
});

test('A155 a turn that the sandbox lost runs once more, then ends with its cause', () => {
  const lost = ended({ outcome: 'Interrupted', code: 'sandbox_lost', message: 'the sandbox is gone' });
  assert.equal(decideTurnEnd(lost).requeue, true);
  assert.deepEqual(decideTurnEnd({ ...lost, attempt: 2 }), {
    requeue: false,
    outcome: 'Interrupted',
    code: 'sandbox_lost',
    message: 'the sandbox is gone',
  });
});

test('A155 an abort that nobody asked for is healed once, then says "runtime aborted"', () => {
  assert.equal(decideTurnEnd(ended({ outcome: 'Aborted', code: 'aborted' })).requeue, true);
  const second = decideTurnEnd(ended({ outcome: 'Aborted', code: 'aborted', attempt: 2 }));
  assert.equal(second.requeue, false);
  assert.equal(second.message, 'runtime aborted');
});

test('a turn that was asked to end is Aborted and final, even if its sandbox died on the way', () => {
  for (const outcome of ['Aborted', 'Interrupted'] as const) {
    const verdict = decideTurnEnd(ended({ outcome, abortAsked: true }));
    assert.equal(verdict.requeue, false);
    assert.equal(verdict.outcome, 'Aborted');
  }
});

test('a failure of the model or the task is final at once', () => {
  assert.equal(decideTurnEnd(ended({ outcome: 'Failed', code: 'rate_limit' })).requeue, false);
});

test('no prompt runs more than twice, and success never runs again', () => {
  const anyEnd = fc.record({
    outcome: fc.constantFrom(...turnOutcome.options),
    code: fc.option(fc.constantFrom(...turnErrorCode.options)),
    message: fc.option(fc.string()),
    abortAsked: fc.boolean(),
    attempt: fc.integer({ min: 1, max: 5 }),
    harness: fc.constant('pi'),
    startedAt: fc.constant(null),
    endedAt: fc.constant('2026-11-30T12:00:00Z'),
  });
  fc.assert(
    fc.property(anyEnd, (end) => {
      const verdict = decideTurnEnd(end);
      assert.ok(!verdict.requeue || (end.attempt < 2 && end.outcome !== 'Succeeded' && !end.abortAsked));
      assert.equal(verdict.outcome === 'Succeeded', end.outcome === 'Succeeded');
    }),
  );
});
