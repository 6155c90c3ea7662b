// Requests for a human: one announcement, one answer, "no" at the deadline and at the end of the turn.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HumanRequest } from '#daemon/harness/contract/adapter.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { type Allowed, createBroker, REQUEST_DEADLINE_MS } from './broker.ts';

const aRequest = (request: Partial<HumanRequest> = {}): HumanRequest => ({
  kind: 'permission',
  id: 'per_1',
  threadId: 'root',
  data: { permission: 'bash', patterns: ['rm x'] },
  ...request,
});

const aBroker = (before: Allowed = {}) => {
  const clock = manualClock();
  const kept: Allowed[] = [];
  const told: string[] = [];
  const broker = createBroker({
    emit: (event, threadId) => told.push(`${threadId} ${event.type} ${JSON.stringify(event.data)}`),
    onChange: () => {},
    allowed: { read: () => before, write: (allowed) => kept.push(allowed) },
    clock,
  });
  return { broker, clock, told, kept };
};

describe('createBroker', () => {
  it('A123 denies at the deadline, with a text for the model', async () => {
    const { broker, clock, told } = aBroker();
    const answer = broker.ask(aRequest(), new AbortController().signal);
    assert.equal(broker.openCount(), 1);
    await clock.advance(REQUEST_DEADLINE_MS.permission - 1);
    assert.equal(broker.openCount(), 1);
    await clock.advance(1);
    const message = 'nobody answered in time; the call is denied';
    assert.deepEqual(await answer, { kind: 'permission', reply: 'reject', message });
    assert.match(told[0] ?? '', /^root permission.asked .*"id":"per_1","deadlineAt":"2026-01-01T00:02:00.000Z"/);
    assert.equal(told[1], 'root permission.replied {"id":"per_1","reply":"reject"}');
  });

  it('A121 closes every open request when the turn ends', async () => {
    const { broker, told, clock } = aBroker();
    const permission = broker.ask(aRequest(), new AbortController().signal);
    const question = broker.ask(aRequest({ kind: 'question', id: 'que_1', data: {} }), new AbortController().signal);
    broker.closeAll();
    assert.deepEqual(await permission, { kind: 'permission', reply: 'reject', message: null });
    assert.deepEqual(await question, { kind: 'question', answers: null });
    assert.deepEqual(
      told.slice(2).map((line) => line.split(' ')[1]),
      ['permission.replied', 'question.rejected'],
    );
    assert.equal(clock.pending(), 0);
  });

  it('announces the same request once and gives both callers one answer', async () => {
    const { broker, told } = aBroker();
    const first = broker.ask(aRequest(), new AbortController().signal);
    const second = broker.ask(aRequest(), new AbortController().signal);
    broker.closeAll();
    assert.deepEqual(await first, await second);
    assert.equal(told.length, 2);
  });

  it('never hangs on a signal that has already fired', async () => {
    const { broker } = aBroker();
    assert.equal((await broker.ask(aRequest(), AbortSignal.abort())).kind, 'permission');
    assert.equal(broker.openCount(), 0);
  });

  it('A119 takes one answer of a person, and tells the harness and the log', async () => {
    const { broker, told, clock } = aBroker();
    const answer = broker.ask(aRequest(), new AbortController().signal);
    assert.equal(broker.answer('per_1', { kind: 'permission', reply: 'once', message: null }), 'taken');
    assert.deepEqual(await answer, { kind: 'permission', reply: 'once', message: null });
    assert.equal(told[1], 'root permission.replied {"id":"per_1","reply":"once"}');
    assert.equal(clock.pending(), 0);
  });

  it('takes the same answer again as the same, and tells another one that it comes too late', async () => {
    const { broker, told } = aBroker();
    const answer = broker.ask(aRequest(), new AbortController().signal);
    const once = { kind: 'permission', reply: 'once', message: null } as const;
    assert.equal(broker.answer('per_1', once), 'taken');
    assert.equal(broker.answer('per_1', once), 'taken');
    assert.equal(broker.answer('per_1', { ...once, reply: 'reject' }), 'ended');
    assert.deepEqual(await answer, once);
    assert.equal(told.length, 2);
  });

  it('A121 knows no request that nobody asked, or of the other kind, and none whose turn is over', () => {
    const { broker } = aBroker();
    const once = { kind: 'permission', reply: 'once', message: null } as const;
    assert.equal(broker.answer('per_1', once), 'unknown');
    void broker.ask(aRequest(), new AbortController().signal);
    assert.equal(broker.answer('per_1', { kind: 'question', answers: [['a']] }), 'unknown');
    broker.closeAll();
    assert.equal(broker.answer('per_1', once), 'ended');
    assert.equal(broker.answer('per_1', { kind: 'permission', reply: 'reject', message: null }), 'ended');
  });

  it('A119 does not ask again what was allowed for the session, and tells harnesses only "once"', async () => {
    const { broker, told, kept } = aBroker();
    const { signal } = new AbortController();
    const data = { permission: 'bash', patterns: ['git push'], always: ['git *'] };
    const first = broker.ask(aRequest({ data }), signal);
    broker.answer('per_1', { kind: 'permission', reply: 'always', message: null });
    assert.equal((await first).kind === 'permission' && ((await first) as { reply: string }).reply, 'once');
    assert.match(told[1] ?? '', /"reply":"always"/);
    assert.deepEqual(kept, [{ bash: ['git *'] }]);
    const ask = (id: string, change: object) => broker.ask(aRequest({ id, data: { ...data, ...change } }), signal);
    assert.deepEqual(await ask('per_2', { patterns: ['git log'] }), {
      kind: 'permission',
      reply: 'once',
      message: null,
    });
    assert.equal(told.length, 2);
    void ask('per_3', { patterns: ['git log', 'rm x'] });
    void ask('per_4', { permission: 'edit', patterns: ['git log'] });
    void ask('per_5', { patterns: [] });
    assert.equal(broker.openCount(), 3);
  });

  it('A119 does not ask again for a tool without a subject that was allowed for the session', async () => {
    const { broker, told } = aBroker();
    const data = { permission: 'hello', patterns: [], always: ['*'] };
    const first = broker.ask(aRequest({ data }), new AbortController().signal);
    broker.answer('per_1', { kind: 'permission', reply: 'always', message: null });
    assert.equal((await first).kind, 'permission');
    const again = await broker.ask(aRequest({ id: 'per_2', data }), new AbortController().signal);
    assert.deepEqual(again, { kind: 'permission', reply: 'once', message: null });
    assert.equal(told.length, 2);
    const other = { permission: 'other', patterns: [], always: ['*'] };
    void broker.ask(aRequest({ id: 'per_3', data: other }), new AbortController().signal);
    assert.equal(told.length, 3);
  });

  it('A119 knows what an earlier daemon of the session was allowed', async () => {
    const { broker, told } = aBroker({ bash: ['rm *'] });
    assert.equal((await broker.ask(aRequest(), new AbortController().signal)).kind, 'permission');
    assert.deepEqual(told, []);
  });

  it('gives a request that is shown again after a gap the answer that it had', async () => {
    const { broker, told } = aBroker();
    const { signal } = new AbortController();
    void broker.ask(aRequest(), signal);
    broker.answer('per_1', { kind: 'permission', reply: 'reject', message: 'not now' });
    assert.deepEqual(await broker.ask(aRequest(), signal), { kind: 'permission', reply: 'reject', message: 'not now' });
    assert.equal(told.length, 2);
  });

  it('A120 gives a question its own deadline', async () => {
    const { broker, clock } = aBroker();
    const answer = broker.ask(aRequest({ kind: 'question', id: 'que_1', data: {} }), new AbortController().signal);
    await clock.advance(REQUEST_DEADLINE_MS.permission + 1);
    assert.equal(broker.openCount(), 1);
    await clock.advance(REQUEST_DEADLINE_MS.question);
    assert.deepEqual(await answer, { kind: 'question', answers: null });
  });
});
