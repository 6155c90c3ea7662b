// The fact of a session from its rows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { headOfBytes } from '#base/head-of-text.ts';
import { factsFrame } from '#schema/wire/sync.ts';
import { type FactRow, factOf } from './session-fact.ts';

const T1 = '2026-11-30T12:00:00.000Z';
const T2 = '2026-11-30T12:05:00.000Z';

const aRow = (changes: Partial<FactRow> = {}): FactRow => ({
  uid: 's1',
  kind: 'session',
  version: 7,
  body: null,
  exists: true,
  pod_uid: 'pod-1',
  generation: 2,
  fenced_pod_uid: null,
  want_start: false,
  budget_reached: false,
  idle_since: T1,
  health_state: null,
  reported_at: null,
  document: null,
  open_turn_id: null,
  open_since: null,
  queued: false,
  turn_id: null,
  turn_prompt_id: null,
  turn_message_id: null,
  turn_outcome: null,
  turn_final: null,
  turn_message: null,
  turn_started_at: null,
  turn_ended_at: null,
  turn_summary: null,
  spec_outcome: null,
  spec_message: null,
  ...changes,
});

const sessionFactOf = (changes: Partial<FactRow>) => {
  const fact = factOf(aRow(changes));
  assert.ok(factsFrame.safeParse({ type: 'fact', cursor: 'c', fact }).success);
  assert.ok(fact.kind === 'session');
  return fact;
};

test('an idle session has been idle since its last turn, one with work has not', () => {
  const idle = sessionFactOf({});
  assert.deepEqual([idle.activity, idle.idleSince], [{ state: 'Idle', since: T1, turnId: null }, T1]);
  const queued = sessionFactOf({ queued: true });
  assert.deepEqual([queued.idleSince, queued.wanted], [null, true]);
  const working = sessionFactOf({ open_turn_id: 't1', open_since: T2 });
  assert.deepEqual([working.activity?.state, working.activity?.turnId, working.idleSince], ['Working', 't1', null]);
});

test('a session is wanted for a prompt that waits or an explicit wish, not for a turn that runs', () => {
  assert.equal(sessionFactOf({ want_start: true }).wanted, true);
  assert.equal(sessionFactOf({ open_turn_id: 't1', open_since: T2 }).wanted, false);
});

test('without a pod there is neither health nor activity', () => {
  const fact = sessionFactOf({ pod_uid: null });
  assert.deepEqual([fact.health, fact.activity, fact.podUid], [null, null, null]);
});

test('the last turn says whether it was the turn of spec.prompt and whether it is final', () => {
  const turn = {
    turn_id: 't1',
    turn_prompt_id: 'p1',
    turn_message_id: 'spec:s1',
    turn_outcome: 'Interrupted',
    turn_final: false,
    turn_started_at: T1,
    turn_ended_at: T2,
    turn_summary: 'ü'.repeat(1_000),
  } as const;
  const fact = sessionFactOf(turn);
  assert.deepEqual([fact.lastTurn?.isSpecPrompt, fact.lastTurn?.final], [true, false]);
  assert.equal(Buffer.byteLength(fact.lastTurn?.summary ?? ''), 1_024);
  assert.equal(sessionFactOf({ ...turn, turn_message_id: 'spec:other' }).lastTurn?.isSpecPrompt, false);
});

test('a session without a row, and a project without a body, are gone', () => {
  assert.deepEqual(factOf(aRow({ exists: false })), { kind: 'gone', uid: 's1' });
  assert.deepEqual(factOf(aRow({ kind: 'gone' })), { kind: 'gone', uid: 's1' });
});

test('law: the head of a text is a prefix of at most so many bytes that ends between characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 0, max: 40 }), (text, maxBytes) => {
      const head = headOfBytes(text, maxBytes);
      assert.ok(text.startsWith(head));
      assert.ok(Buffer.byteLength(head) <= maxBytes);
      assert.ok(head === text || Buffer.byteLength(head) > maxBytes - 4);
    }),
  );
});
