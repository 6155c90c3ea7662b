// The mapping of Pi's events where it is more than a change of names: cuts, aborts, failures, compactions.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EVENT_DATA } from '#schema/events/envelope.ts';
import type { HarnessEvent } from '../contract/events.ts';
import { createEventMapper } from './map-events.ts';
import type { PiAssistant, PiContent, PiEvent, PiUsage } from './pi-events.ts';

const usage: PiUsage = {
  input: 7,
  output: 2,
  cacheRead: 1,
  cacheWrite: 0,
  reasoning: 1,
  totalTokens: 10,
  cost: { total: 0 },
};

const assistant = (content: readonly PiContent[], stopReason: string, errorMessage?: string): PiAssistant => ({
  role: 'assistant',
  content,
  model: 'acme/coder',
  usage,
  stopReason,
  timestamp: 1_000,
  ...(errorMessage === undefined ? {} : { errorMessage }),
});

const call: PiContent = { type: 'toolCall', id: 'call_1', name: 'bash', arguments: { command: 'sleep 9' } };
const start = (message: PiAssistant): PiEvent => ({ type: 'message_start', message });
const step = (message: PiAssistant, type: string, more: object = {}): PiEvent => ({
  type: 'message_update',
  message,
  assistantMessageEvent: { type, contentIndex: 0, ...more },
});
const end = (message: PiAssistant): readonly PiEvent[] => [
  { type: 'message_end', message },
  { type: 'turn_end', message },
];

const map = (events: readonly PiEvent[]): readonly HarnessEvent[] => {
  const mapper = createEventMapper('root', 's');
  mapper.begin({ messageId: 'm1', agent: 'dev', model: 'acme/coder' });
  const mapped = events.flatMap((event, at) => mapper.map(event, 2_000 + at));
  for (const { type, data } of mapped) assert.equal(EVENT_DATA[type].safeParse(data).error?.message, undefined, type);
  return mapped;
};

const partsOf = (events: readonly HarnessEvent[]) =>
  events.flatMap((event) => (event.type === 'message.part.updated' ? [event.data.part] : []));
const lastMessage = (events: readonly HarnessEvent[]) =>
  events.flatMap((event) => (event.type === 'message.updated' ? [event.data.message] : [])).at(-1);

describe('createEventMapper', () => {
  it('A141 gives the first user message the id of the prompt, and later ones an id of their own', () => {
    const user: PiEvent = { type: 'message_start', message: { role: 'user', content: 'hi', timestamp: 1 } };
    const ids = map([user, user]).flatMap((event) => (event.type === 'message.updated' ? [event.data.message.id] : []));
    assert.equal(ids[0], 'm1');
    assert.match(ids[1] ?? '', /^msg_s/);
  });

  it('closes the text of a stream that was cut, and tells the abort of the message', () => {
    const message = assistant([{ type: 'text', text: 'half a' }], 'aborted', 'Request was aborted.');
    const events = map([
      start({ ...message, stopReason: 'pending', content: [] }),
      step(message, 'text_start'),
      ...end(message),
    ]);
    const text = partsOf(events).at(-1);
    assert.deepEqual([text?.type, text?.text], ['text', 'half a']);
    assert.ok(text?.['endedAt'] !== undefined);
    assert.deepEqual(lastMessage(events)?.['error'], { code: 'aborted', message: 'Aborted' });
    assert.ok(!partsOf(events).some((part) => part.type === 'step-finish'));
  });

  it('ends a call that was announced and never run', () => {
    const message = assistant([call], 'aborted');
    const events = map([
      start({ ...message, stopReason: 'pending' }),
      step(message, 'toolcall_start'),
      ...end(message),
    ]);
    assert.deepEqual(
      events.flatMap((event) => (event.type === 'tool.terminal' ? [event.data] : [])),
      [{ callId: 'call_1', tool: 'bash', outcome: 'aborted' }],
    );
  });

  it('tells a call once, with its exit code as completed and an abort as aborted', () => {
    const message = assistant([call], 'toolUse');
    const before = [start(message), step(message, 'toolcall_start'), { type: 'message_end', message } as PiEvent];
    const run = (content: string, more: object): PiEvent[] => [
      { type: 'tool_execution_start', toolCallId: 'call_1', toolName: 'bash', args: { command: 'sleep 9' } },
      {
        type: 'tool_execution_end',
        toolCallId: 'call_1',
        toolName: 'bash',
        isError: true,
        result: { content: [{ type: 'text', text: content }], ...more },
      },
    ];
    const failed = map([
      ...before,
      ...run('oh\n\nCommand exited with code 3', { structuredContent: { exit_code: 3 } }),
    ]);
    assert.deepEqual(partsOf(failed).at(-1)?.state?.metadata, { exit: 3 });
    assert.equal(partsOf(failed).at(-1)?.state?.status, 'completed');
    const aborted = map([...before, ...run('oh\n\nCommand aborted', {})]);
    const terminal = aborted.at(-1);
    assert.equal(terminal?.type === 'tool.terminal' && terminal.data.outcome, 'aborted');
  });

  it('A136 hides the error of an overflow, and shows every other one', () => {
    const failed = (text: string) => {
      const message = assistant([], 'error', text);
      return lastMessage(map([start(message), ...end(message)]))?.['error'];
    };
    assert.equal(failed('400: {"code":"context_length_exceeded","message":"long"}'), undefined);
    assert.deepEqual(failed('402: {"code":null,"message":"used up"}'), { code: 'credits', message: 'used up' });
  });

  it('A137 shows a compaction as a request and a summary, and takes back one that had nothing to do', () => {
    const result = { summary: 'So far.', usage };
    const begin: PiEvent = { type: 'compaction_start', reason: 'overflow' };
    const done = map([begin, { type: 'compaction_end', reason: 'overflow', aborted: false, result }]);
    assert.deepEqual(
      partsOf(done).map(({ type }) => type),
      ['compaction', 'step-start', 'text', 'step-finish'],
    );
    assert.deepEqual(done.at(-1)?.data, { auto: true });
    assert.equal(lastMessage(done)?.['summary'], true);
    const errorMessage = 'Compaction failed: Nothing to compact (session too small)';
    const nothing = map([
      { type: 'compaction_start', reason: 'manual' },
      { type: 'compaction_end', reason: 'manual', aborted: false, errorMessage },
    ]);
    assert.deepEqual(
      nothing.slice(-2).map(({ type }) => type),
      ['message.removed', 'message.removed'],
    );
  });
});
