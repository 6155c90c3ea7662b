// What a person sees of the event log, from events as adapters send them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StoredEvent } from '#schema/events/envelope.ts';
import type { MessageView } from '#schema/rest/transcript.ts';
import { makeEventView, messagesText } from './event-view.ts';

let seq = 0;
const event = (type: string, data: Record<string, unknown>, threadId = 'root'): StoredEvent => {
  seq += 1;
  return {
    id: `e${seq}`,
    seq,
    sessionUid: 's',
    runId: null,
    threadId,
    turnId: 't',
    type,
    at: '2026-11-30T12:00:00.000Z',
    hidden: false,
    causedBy: null,
    data,
  };
};
const message = (id: string, role: string) => event('message.updated', { message: { id, role } });
const textPart = (messageId: string, id: string, text: string, threadId?: string) =>
  event('message.part.updated', { part: { id, messageId, type: 'text', text } }, threadId);
const delta = (messageId: string, partId: string, text: string, threadId?: string) =>
  event('message.part.delta', { messageId, partId, field: 'text', delta: text }, threadId);
const tool = (status: string, more: Record<string, unknown> = {}, threadId?: string) =>
  event(
    'message.part.updated',
    { part: { id: 'p9', messageId: 'm', type: 'tool', tool: 'bash', callId: 'c', state: { status, ...more } } },
    threadId,
  );

const shown = (events: readonly StoredEvent[], prompts = false): string => {
  const view = makeEventView({ prompts });
  return events.map((entry) => view(entry)).join('');
};

describe('the view of a log', () => {
  test('what a shell command of the person printed is shown, and what a tool of the agent printed is not', () => {
    const started = (messageId: string) => event('turn.started', { promptId: 'p', messageId });
    const done = tool('completed', { input: { command: 'echo hi' }, output: 'hi\n\u001b[2J\n' });
    const view = makeEventView({ prompts: false, isShell: (id) => id === 'mine' });
    const of = (messageId: string) => [started(messageId), tool('running', { input: { command: 'echo hi' } }), done];
    assert.equal(of('mine').map(view).join(''), '> bash echo hi\nhi\n␛[2J\n');
    assert.equal(shown(of('other')), '> bash echo hi\n');
  });

  test('A125 messages of a conversation are shown as its log would be', () => {
    const message = (id: string, role: string, ...parts: Record<string, unknown>[]) =>
      ({
        message: { id, role },
        threadId: 'ses_1',
        turnId: 't',
        reverted: false,
        parts: parts.map((part, at) => ({ id: `${id}-${at}`, messageId: id, ...part })),
      }) as unknown as MessageView;
    const state = { status: 'completed', input: { pattern: '*.ts' }, output: 'a.ts' };
    const messages = [
      message('m1', 'user', { type: 'text', text: 'look for\nit' }),
      message('m2', 'assistant', { type: 'tool', tool: 'glob', callId: 'c', state }, { type: 'text', text: 'found' }),
    ];
    assert.equal(messagesText(messages), '\n>> look for\n>> it\n> glob *.ts\nfound\n');
    assert.equal(messagesText([]), '');
  });

  test('pieces of a text are written once, and the whole part adds only what was missing', () => {
    const events = [
      message('m', 'assistant'),
      textPart('m', 'p', ''),
      delta('m', 'p', 'all '),
      delta('m', 'p', 'is '),
      textPart('m', 'p', 'all is well'),
      event('turn.ended', { outcome: 'Succeeded' }),
    ];
    assert.equal(shown(events), 'all is well\n');
    assert.equal(
      shown([message('m', 'assistant'), textPart('m', 'p', 'at once'), textPart('m', 'p', 'at once')]),
      'at once',
    );
  });

  test('an answer that begins again is told apart from what was shown of it, and only where something was', () => {
    const retry = (threadId?: string) =>
      event('session.status', { status: 'retry', message: 'Connection reset' }, threadId);
    const step = (type: string, id: string) => event('message.part.updated', { part: { id, messageId: 'm', type } });
    const waiting = '-- waiting for the model: Connection reset\n';
    const begun = [
      message('m', 'assistant'),
      step('step-start', 's1'),
      textPart('m', 'p1', ''),
      delta('m', 'p1', 'half'),
    ];
    const again = [step('step-start', 's2'), textPart('m', 'p2', 'whole')];
    const mark = '-- the answer begins again: what is shown of it so far does not count\n';
    assert.equal(shown([...begun, retry(), retry(), ...again]), `half\n${waiting}${mark}${waiting}whole`);
    assert.equal(shown([message('m', 'assistant'), retry(), ...again]), `${waiting}whole`);
    assert.equal(shown([...begun, retry('child-1')]), `half\n${waiting}`);
    assert.equal(shown([...begun, step('step-finish', 'f'), retry(), ...again]), `half\n${waiting}whole`);
  });

  test('a tool is one line when it starts and one more when it fails, on lines of their own', () => {
    const events = [
      message('m', 'assistant'),
      textPart('m', 'p', 'I look'),
      tool('pending'),
      tool('running', { input: { command: 'ls -la' } }),
      tool('running', { input: { command: 'ls -la' } }),
      tool('error', { error: 'no such file' }),
    ];
    assert.equal(shown(events), 'I look\n> bash ls -la\n! bash: no such file\n');
  });

  test('the words of subagents are left out, their tools are set in', () => {
    const events = [
      message('m', 'assistant'),
      textPart('m', 'p', 'secret thoughts', 'child-1'),
      delta('m', 'p', 'more', 'child-1'),
      tool('running', { input: { command: 'grep x' } }, 'child-1'),
    ];
    assert.equal(shown(events), '  > bash grep x\n');
  });

  test('thinking is not shown', () => {
    const part = { id: 'r', messageId: 'm', type: 'reasoning', text: '' };
    assert.equal(shown([event('message.part.updated', { part }), delta('m', 'r', 'hm')]), '');
  });

  test('prompts are shown in a log that is read later, and not while one talks', () => {
    const events = [message('u', 'user'), textPart('u', 'pu', 'do it\nnow'), textPart('u', 'pu', 'do it\nnow')];
    assert.equal(shown(events, true), '\n>> do it\n>> now\n');
    assert.equal(shown(events), '');
  });

  test('ends of turns, pushes, questions and permissions have a line each', () => {
    assert.equal(
      shown([event('turn.ended', { outcome: 'Failed', message: 'no credit' })]),
      '-- turn failed: no credit\n',
    );
    assert.equal(
      shown([event('workspace.pushed', { branch: 'b', commit: '0123456789abcdef' })]),
      '-- pushed b at 0123456789ab\n',
    );
    const permission = { id: 'per_1', permission: 'bash', patterns: ['rm *'], metadata: { command: 'rm x' } };
    assert.equal(shown([event('permission.asked', permission)]), '?? may the agent: bash rm x   (per_1)\n');
    const questions = [{ question: 'Which?', options: [{ label: 'A' }, { label: 'B' }] }];
    assert.equal(
      shown([event('question.asked', { id: 'q1', questions })]),
      '?? the agent asks   (q1)\n  Which? [A | B]\n',
    );
  });

  test('events of unknown types and broken shapes say nothing and break nothing', () => {
    for (const data of [{}, { part: null }, { part: [] }, { message: 1 }, { questions: 'x' }])
      for (const type of [
        'someday.new',
        'message.part.updated',
        'message.updated',
        'message.part.delta',
        'session.status',
      ])
        assert.equal(shown([event(type, data)]), '');
  });
});
