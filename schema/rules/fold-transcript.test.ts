// The conversation as it stands after some events.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type FoldedEvent, type FoldState, foldTranscript, partKey, visibleTextOf } from './fold-transcript.ts';

const EMPTY: FoldState = { messages: new Map(), parts: new Map(), revertedFrom: null };
let seq = 0;
const event = (type: string, data: Record<string, unknown>, more: Partial<FoldedEvent> = {}): FoldedEvent => {
  seq += 1;
  return { seq, type, thread_id: 'root', turn_id: 't1', hidden: false, data, ...more };
};
const message = (id: string, role = 'assistant') => event('message.updated', { message: { id, role } });
const part = (messageId: string, id: string, more: Record<string, unknown> = {}) =>
  event('message.part.updated', { part: { id, messageId, type: 'text', ...more } });
const delta = (messageId: string, partId: string, text: string) =>
  event('message.part.delta', { messageId, partId, field: 'text', delta: text });

/** What is stored after folding several chunks one after the other. */
const stored = (...chunks: FoldedEvent[][]): FoldState => {
  const messages = new Map();
  const parts = new Map();
  let revertedFrom: string | null = null;
  for (const chunk of chunks) {
    const result = foldTranscript({ messages, parts, revertedFrom }, chunk);
    for (const each of result.messages) messages.set(each.id, each);
    for (const each of result.parts) parts.set(partKey(each.messageId, each.id), each);
    for (const id of result.removedMessages) messages.delete(id);
    for (const { messageId, id } of result.removedParts) parts.delete(partKey(messageId, id));
    for (const [key, each] of parts) if (result.removedMessages.includes(each.messageId)) parts.delete(key);
    revertedFrom = result.revertedFrom;
  }
  return { messages, parts, revertedFrom };
};

describe('foldTranscript', () => {
  it('A139 puts deltas and updates of a part together, also across chunks', () => {
    const events = [
      message('m1'),
      part('m1', 'p1', { text: '' }),
      delta('m1', 'p1', 'Hel'),
      delta('m1', 'p1', 'lo'),
      delta('m1', 'p2', 'early'),
    ];
    const whole = stored(events);
    assert.equal(whole.parts.get('m1 p1')?.data['text'], 'Hello');
    assert.equal(whole.parts.get('m1 p2')?.data['text'], 'early');
    const split = stored(...events.map((each) => [each]));
    assert.deepEqual([...split.parts], [...whole.parts]);
    assert.deepEqual([...split.messages], [...whole.messages]);
    assert.equal(stored(events, [part('m1', 'p1', { text: 'Hello!' })]).parts.get('m1 p1')?.data['text'], 'Hello!');
  });

  it('keeps the place of a message and of a part when news of it comes', () => {
    const first = message('m1');
    const { messages } = stored([first, message('m2')], [message('m1', 'user')]);
    assert.equal(messages.get('m1')?.ordinal, first.seq);
    assert.equal(messages.get('m1')?.data['role'], 'user');
  });

  it('A152 closes a call that was ended from outside, and leaves a finished one alone', () => {
    const call = (callId: string, status: string) =>
      part('m1', callId, { type: 'tool', tool: 'bash', callId, state: { status, output: 'out' } });
    const terminal = (type: string, callId: string, outcome = 'aborted') =>
      event(type, { callId, tool: 'bash', outcome });
    const { parts } = stored(
      [call('lost', 'running'), call('aborted', 'pending'), call('done', 'completed')],
      [terminal('effect.uncertain', 'lost'), terminal('tool.terminal', 'lost'), terminal('tool.terminal', 'aborted')],
      [terminal('tool.terminal', 'done', 'completed'), terminal('tool.terminal', 'unknown')],
    );
    const stateOf = (callId: string) => parts.get(`m1 ${callId}`)?.data['state'] as { status: string; error?: string };
    assert.equal(stateOf('lost').status, 'error');
    assert.match(stateOf('lost').error ?? '', /may have had its effect/);
    assert.deepEqual([stateOf('aborted').status, stateOf('aborted').error], ['error', 'aborted']);
    assert.equal(stateOf('done').status, 'completed');
  });

  it('takes out what was removed, with its parts, also within one chunk', () => {
    const after = stored(
      [message('m1'), part('m1', 'p1'), message('m2'), part('m2', 'p1'), part('m2', 'p2')],
      [event('message.removed', { messageId: 'm1' }), event('message.part.removed', { messageId: 'm2', partId: 'p1' })],
      [message('m3'), event('message.removed', { messageId: 'm3' })],
    );
    assert.deepEqual([...after.messages.keys()], ['m2']);
    assert.deepEqual([...after.parts.keys()], ['m2 p2']);
  });

  it('A62 knows from where on a conversation is rewound, until a turn begins', () => {
    const reverted = [message('m1'), event('session.reverted', { messageId: 'm1' })];
    assert.equal(stored(reverted).revertedFrom, 'm1');
    assert.equal(stored(reverted, [event('session.unreverted', {})]).revertedFrom, null);
    assert.equal(stored(reverted, [event('turn.started', {})]).revertedFrom, null);
  });

  it('survives events that hold nothing of what they should', () => {
    const broken = [
      'message.updated',
      'message.part.updated',
      'message.part.delta',
      'tool.terminal',
      'message.removed',
    ];
    const events = broken.flatMap((type) => [event(type, {}), event(type, { part: 7, message: null, messageId: 3 })]);
    assert.deepEqual(foldTranscript(EMPTY, events).messages, []);
  });

  it('takes nothing under an id that no table can hold', () => {
    for (const id of ['', 'x'.repeat(129), 'a\u0000b', 7]) {
      const events = [
        event('message.updated', { message: { id, role: 'user' } }),
        event('message.part.updated', { part: { id, messageId: 'm1', type: 'text' } }),
        event('message.part.delta', { messageId: id, partId: 'p', field: 'text', delta: 'x' }),
      ];
      const { messages, parts } = foldTranscript(EMPTY, events);
      assert.deepEqual([messages.length, parts.length], [0, 0], JSON.stringify(id));
    }
  });

  it('gives search the text that people see, and nothing else', () => {
    const { parts } = stored([
      part('m1', 'seen', { text: 'seen' }),
      part('m1', 'thought', { type: 'reasoning', text: 'thought' }),
      part('m1', 'made', { text: 'made', synthetic: true }),
      { ...part('m1', 'hidden', { text: 'hidden' }), hidden: true },
    ]);
    assert.deepEqual(
      [...parts.values()].flatMap((each) => visibleTextOf(each) ?? []),
      ['seen'],
    );
  });
});
