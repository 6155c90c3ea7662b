// Requests for a human: one announcement, one answer, "no" at the deadline and at the end of the turn.
import { describe, it } from 'node:test';
import { manualClock } from '#test/support/manual-clock.ts';
import type { HumanRequest } from '#daemon/harness/contract/adapter.ts';
import { createBroker, REQUEST_DEADLINE_MS } from './broker.ts';

const aRequest = (request: Partial<HumanRequest> = {}): HumanRequest => ({
  kind: 'permission',
  id: 'per_1',
  threadId: 'root',
  data: { permission: 'bash', patterns: ['rm x'] },
  ...request,
});

const aBroker = () => {
  const clock = manualClock();
  const told: string[] = [];
  const broker = createBroker({
    emit: (event, threadId) => told.push(`${threadId} ${event.type} ${JSON.stringify(event.data)}`),
    onChange: () => {},
    clock,
  });
  return { broker, clock, told };
};

describe('createBroker', () => {
  it('A123 denies at the deadline, with a text for the model', async (t) => {
    const { broker, clock, told } = aBroker();
    const answer = broker.ask(aRequest(), new AbortController().signal);
    t.assert.equal(broker.openCount(), 1);
    await clock.advance(REQUEST_DEADLINE_MS - 1);
    t.assert.equal(broker.openCount(), 1);
    await clock.advance(1);
    const message = 'nobody answered in time; the call is denied';
    t.assert.deepEqual(await answer, { kind: 'permission', reply: 'reject', message });
    t.assert.match(told[0] ?? '', /^root permission.asked .*"id":"per_1","deadlineAt":"2026-01-01T00:02:00.000Z"/);
    t.assert.equal(told[1], 'root permission.replied {"id":"per_1","reply":"reject"}');
  });

  it('A121 closes every open request when the turn ends', async (t) => {
    const { broker, told, clock } = aBroker();
    const permission = broker.ask(aRequest(), new AbortController().signal);
    const question = broker.ask(aRequest({ kind: 'question', id: 'que_1', data: {} }), new AbortController().signal);
    broker.closeAll();
    t.assert.deepEqual(await permission, { kind: 'permission', reply: 'reject', message: null });
    t.assert.deepEqual(await question, { kind: 'question', answers: null });
    t.assert.deepEqual(
      told.slice(2).map((line) => line.split(' ')[1]),
      ['permission.replied', 'question.rejected'],
    );
    t.assert.equal(clock.pending(), 0);
  });

  it('announces the same request once and gives both callers one answer', async (t) => {
    const { broker, told } = aBroker();
    const first = broker.ask(aRequest(), new AbortController().signal);
    const second = broker.ask(aRequest(), new AbortController().signal);
    broker.closeAll();
    t.assert.deepEqual(await first, await second);
    t.assert.equal(told.length, 2);
  });

  it('never hangs on a signal that has already fired', async (t) => {
    const { broker } = aBroker();
    t.assert.equal((await broker.ask(aRequest(), AbortSignal.abort())).kind, 'permission');
    t.assert.equal(broker.openCount(), 0);
  });
});
