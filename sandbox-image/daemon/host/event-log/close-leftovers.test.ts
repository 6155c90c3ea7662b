// What ends the things that a dead daemon left open in events that it could not send.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DaemonEvent } from '#schema/events/envelope.ts';
import { closingsOf } from './close-leftovers.ts';

const event = (type: string, data: Record<string, unknown>, turnId: string | null = 't1'): DaemonEvent => ({
  n: 1,
  id: 'e',
  type,
  at: '2026-11-30T12:00:00.000Z',
  threadId: 'root',
  turnId,
  hidden: false,
  causedBy: null,
  data,
});
const call = (callId: string, status: string, turnId = 't1') =>
  event('message.part.updated', { part: { type: 'tool', tool: 'bash', callId, state: { status } } }, turnId);

describe('closingsOf', () => {
  it('A155 J12 ends every call that was left open, and calls one that ran uncertain', () => {
    const events = [call('a', 'running'), call('b', 'pending'), call('c', 'running', 't2'), call('a', 'running')];
    assert.deepEqual(
      closingsOf(events).map(({ type, turnId, data }) => [type, turnId, data['callId']]),
      [
        ['effect.uncertain', 't1', 'a'],
        ['tool.terminal', 't1', 'a'],
        ['tool.terminal', 't1', 'b'],
        ['effect.uncertain', 't2', 'c'],
        ['tool.terminal', 't2', 'c'],
      ],
    );
  });

  it('A121 says no to every request that was left open', () => {
    const events = [
      event('permission.asked', { id: 'per_1' }),
      event('permission.asked', { id: 'per_2' }),
      event('question.asked', { id: 'que_1' }),
      event('permission.replied', { id: 'per_2', reply: 'once' }),
    ];
    assert.deepEqual(
      closingsOf(events).map(({ type, data }) => [type, data]),
      [
        ['permission.replied', { id: 'per_1', reply: 'reject' }],
        ['question.rejected', { id: 'que_1' }],
      ],
    );
  });

  it('adds nothing where nothing is open', () => {
    const done = event('tool.terminal', { callId: 'a', tool: 'bash', outcome: 'completed' });
    assert.deepEqual(closingsOf([call('a', 'running'), done, call('b', 'completed'), event('x', {})]), []);
    assert.deepEqual(closingsOf([]), []);
  });
});
