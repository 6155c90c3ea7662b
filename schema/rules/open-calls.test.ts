// Which calls of a lost turn are without an end.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openCallsOf } from './open-calls.ts';

const part = (callId: unknown, status: string, more: object = {}) => ({
  type: 'message.part.updated',
  thread_id: 'root',
  data: { part: { type: 'tool', tool: 'bash', callId, state: { status }, ...more } },
});
const terminal = (callId: string) => ({ type: 'tool.terminal', thread_id: 'root', data: { callId, tool: 'bash' } });

describe('openCallsOf', () => {
  it('J12 gives what still runs or waits, with its last state, in the order of its beginning', () => {
    const events = [part('a', 'pending'), part('b', 'running'), part('a', 'running'), part('c', 'pending')];
    assert.deepEqual(
      openCallsOf(events).map(({ callId, status }) => [callId, status]),
      [
        ['a', 'running'],
        ['b', 'running'],
        ['c', 'pending'],
      ],
    );
  });
  it('J12 leaves out what ended, by its state or by its terminal', () => {
    const events = [part('a', 'running'), part('b', 'running'), part('a', 'completed'), terminal('b'), terminal('x')];
    assert.deepEqual(openCallsOf(events), []);
  });
  it('survives events without a call', () => {
    assert.deepEqual(openCallsOf([part(7, 'running'), part('', 'running'), { ...terminal('a'), data: {} }]), []);
    assert.equal(openCallsOf([part('a', 'running', { tool: 3 })])[0]?.tool, 'unknown');
  });
});
