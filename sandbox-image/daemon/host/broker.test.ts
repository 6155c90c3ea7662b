// Requests for a human: one announcement, one answer, "no" at the deadline and at the end of the turn.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HumanRequest } from '#daemon/harness/contract/adapter.ts';
import { manualClock } from '#test/support/manual-clock.ts';
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
  it('A123 denies at the deadline, with a text for the model', async () => {
    const { broker, clock, told } = aBroker();
    const answer = broker.ask(aRequest(), new AbortController().signal);
    assert.equal(broker.openCount(), 1);
    await clock.advance(REQUEST_DEADLINE_MS - 1);
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
});
