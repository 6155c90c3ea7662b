// What is counted around turns and appends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countingAppends, countingTurnEnds, type TurnCount } from './session-counts.ts';
import { decideTurnEnd } from './turn-end.ts';

const ended = {
  outcome: 'Interrupted',
  code: 'sandbox_lost',
  message: null,
  abortAsked: true,
  attempt: 1,
  harness: 'pi',
  startedAt: '2026-11-30T12:00:00Z',
  endedAt: '2026-11-30T12:00:05.500Z',
} as const;

test('§10 an end of a turn is counted as what the rule makes of it, with the time that the turn ran', () => {
  const counts: TurnCount[] = [];
  const decide = countingTurnEnds(decideTurnEnd, (turn) => counts.push(turn));
  assert.equal(decide(ended).outcome, 'Aborted');
  decide({ ...ended, abortAsked: false, outcome: 'Failed', harness: null, startedAt: null });
  assert.deepEqual(counts, [
    { harness: 'pi', outcome: 'Aborted', seconds: 5.5 },
    { harness: 'other', outcome: 'Failed', seconds: undefined },
  ]);
});

test('§10 a batch of appends is counted by what became of each, also when it fails', async () => {
  const counts: string[] = [];
  const told = (list: readonly Readonly<{ result: string; appends: number }>[], seconds: number) =>
    counts.push(`${list.map(({ result, appends }) => `${appends} ${result}`).join(', ')} in ${seconds}`);
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs };
  const store = async (batch: readonly string[]) => {
    nowMs += 500;
    if (batch[0] === 'break') throw new Error('no database');
    return batch.map((each) => (each === 'old' ? { refused: new Error('old') } : { headSeq: 1 }));
  };
  const counting = countingAppends(store, clock, told);
  await counting(['a', 'old', 'b']);
  await assert.rejects(counting(['break']), /no database/);
  assert.deepEqual(counts, ['2 stored, 1 refused in 0.5', '1 failed in 0.5']);
});
