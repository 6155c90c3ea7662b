// What a turn leaves open, and what its summary is.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { headOfBytes } from '#base/head-of-text.ts';
import type { HarnessEvent } from '#daemon/harness/contract/events.ts';
import { closeOpenCalls, EMPTY_RECORD, recordEvent } from './turn-record.ts';

const message = (id: string, role: 'user' | 'assistant', extra: Record<string, unknown> = {}): HarnessEvent => ({
  type: 'message.updated',
  threadId: 'root',
  data: { message: { id, role, ...extra } },
});
const text = (
  messageId: string,
  value: string,
  threadId = 'root',
  extra: Record<string, unknown> = {},
): HarnessEvent => ({
  type: 'message.part.updated',
  threadId,
  data: { part: { id: `p-${messageId}`, messageId, type: 'text', text: value, ...extra } },
});
const call = (callId: string, status: 'pending' | 'running' | 'completed', threadId = 'root'): HarnessEvent => ({
  type: 'message.part.updated',
  threadId,
  data: { part: { id: callId, messageId: 'a', type: 'tool', tool: 'bash', callId, state: { status } } },
});
const recordOf = (...events: readonly HarnessEvent[]) => events.reduce(recordEvent, EMPTY_RECORD);

describe('recordEvent', () => {
  it('takes the last visible text of the assistant as the answer', () => {
    const events = [
      message('u', 'user'),
      text('u', 'do it'),
      message('a', 'assistant'),
      text('a', 'first'),
      text('a', 'last'),
      text('a', ''),
    ];
    assert.equal(recordOf(...events).answer, 'last');
  });

  it('leaves out subagents, summaries of a compaction and synthetic text', () => {
    const events = [
      message('a', 'assistant'),
      text('a', 'mine'),
      text('c', 'of a child', 'ses_child'),
      message('s', 'assistant', { summary: true }),
      text('s', '## Goal'),
      text('a', 'The following tool was executed', 'root', { synthetic: true }),
    ];
    assert.equal(recordOf(...events).answer, 'mine');
  });

  it('A155 closes what is open, and calls a running one uncertain when the harness died', () => {
    const record = recordOf(
      call('1', 'pending'),
      call('2', 'running', 'ses_child'),
      call('3', 'running'),
      call('3', 'completed'),
    );
    assert.deepEqual(
      closeOpenCalls(record, true).map((event) => `${event.threadId} ${event.type} ${event.data.callId}`),
      ['root tool.terminal 1', 'ses_child effect.uncertain 2', 'ses_child tool.terminal 2'],
    );
    assert.deepEqual(
      closeOpenCalls(record, false).map((event) => event.type),
      ['tool.terminal', 'tool.terminal'],
    );
    assert.deepEqual(closeOpenCalls(recordOf(call('1', 'running'), call('1', 'completed')), true), []);
  });
});

describe('headOfBytes', () => {
  it('cuts at a character and never above the limit', () => {
    assert.equal(headOfBytes('äöü', 3), 'ä');
    assert.equal(headOfBytes('a😀b', 4), 'a');
    assert.equal(headOfBytes('short', 1_024), 'short');
    assert.equal(Buffer.byteLength(headOfBytes('€'.repeat(1_000), 1_024)), 1_023);
  });
});
