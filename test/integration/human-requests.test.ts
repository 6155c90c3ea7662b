// Permissions and questions in a real database: opened and ended by the daemon's events, answered once by people.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { ConflictError, InvalidError, NotFoundError } from '#base/errors.ts';
import { makeHumanRequests } from '#controlplane/app/human-requests.ts';
import { getRequest, listOpen, storeAnswer } from '#controlplane/store/human-requests.ts';
import { type Database, firstRow } from '#controlplane/store/statement.ts';
import type { Session } from '#schema/resources/session.ts';
import type { HumanAnswerWire } from '#schema/wire/requests.ts';
import { freshDatabase } from '#test/support/postgres.ts';
import { AT, anEvent, aPrompt, aSessionKey, storedSessions } from '#test/support/stored-sessions.ts';

const BY = 'user:alice';
const ONCE = { kind: 'permission', reply: 'once' } as const;

const asked = (n: number, id: string, turnId: string | null, data: Record<string, unknown> = {}) =>
  anEvent(n, {
    type: 'permission.asked',
    turnId,
    data: { id, permission: 'bash', patterns: ['rm x'], deadlineAt: AT, ...data },
  });

const askedQuestion = (n: number, id: string, questions: unknown) =>
  anEvent(n, { type: 'question.asked', data: { id, questions, deadlineAt: AT } });

describe('what harnesses ask people', () => {
  let database: Database;
  let parts: ReturnType<typeof storedSessions>;
  let deliveries: string[];
  let delivery: 'taken' | 'ended' | 'unknown' | 'unreachable';

  const requests = () =>
    makeHumanRequests({
      find: (uid, kind, id) => firstRow(database.query, getRequest(uid, kind, id)),
      listOpen: (after_, limit) => database.query(listOpen(after_, limit)),
      storeAnswer: async (uid, kind, id, answer, by) =>
        (await database.query(storeAnswer(uid, kind, id, answer, by))).length > 0,
      deliver: async (_uid, id, answer) => {
        deliveries.push(`${id} ${JSON.stringify(answer)}`);
        return delivery;
      },
    });
  const sessionOf = (uid: string) => ({ metadata: { uid, name: uid, namespace: 'team' } }) as unknown as Session;
  const claimed = async (uid: string) => {
    await parts.inbox.admit(aSessionKey(uid), aPrompt(uid, 'm1'));
    return parts.claim(uid);
  };

  before(async () => {
    database = (await freshDatabase({ poolSize: 8 })).pool;
    parts = storedSessions(database);
  });
  const fresh = (how: typeof delivery = 'taken') => {
    deliveries = [];
    delivery = how;
    return requests();
  };

  it('A122 lists what is open, oldest first, only where the caller may answer', async () => {
    const all = fresh();
    for (const [uid, at] of [
      ['list-b', '2026-11-30T12:00:02.000Z'],
      ['list-a', '2026-11-30T12:00:01.000Z'],
      ['list-c', '2026-11-30T12:00:03.000Z'],
    ] as const) {
      const { generation } = await claimed(uid);
      await parts.append({ sessionUid: uid, generation, events: [{ ...asked(1, `per_${uid}`, null), at }] });
    }
    const mine = await all.listOpen({ limit: 50 }, async (_kind, _namespace, name) => name !== 'list-c');
    assert.deepEqual(
      mine.items.map((item) => [item.id, item.session, item.state]),
      [
        ['per_list-a', 'list-a', 'open'],
        ['per_list-b', 'list-b', 'open'],
      ],
    );
    const first = await all.listOpen({ limit: 1 }, async () => true);
    const second = await all.listOpen({ limit: 1, cursor: first.cursor ?? undefined }, async () => true);
    assert.deepEqual([first.items[0]?.id, second.items[0]?.id], ['per_list-a', 'per_list-b']);
    const none = await all.listOpen({ limit: 50 }, async () => false);
    assert.deepEqual(none, { items: [], cursor: null });
  });

  it('A119 stores an answer before the daemon hears of it, and ends with the daemon', async () => {
    const all = fresh();
    const { generation } = await claimed('answer');
    await parts.append({ sessionUid: 'answer', generation, events: [asked(1, 'per_1', null)] });
    const { view, delivered } = await all.answer(sessionOf('answer'), 'per_1', ONCE, BY);
    assert.deepEqual([view.state, view.answeredBy, delivered], ['answered', BY, true]);
    assert.deepEqual(deliveries, ['per_1 {"kind":"permission","reply":"once"}']);
    const replied = anEvent(2, { type: 'permission.replied', data: { id: 'per_1', reply: 'once' } });
    await parts.append({ sessionUid: 'answer', generation, events: [replied] });
    const ended = await all.get(sessionOf('answer'), 'permission', 'per_1');
    assert.deepEqual([ended.state, ended.outcome], ['ended', 'once']);
  });

  it('gives two people who answer at once one answer: the second is told that it comes too late', async () => {
    const all = fresh();
    const { generation } = await claimed('race');
    await parts.append({ sessionUid: 'race', generation, events: [asked(1, 'per_1', null)] });
    const reject = { kind: 'permission', reply: 'reject' } as const;
    const results = await Promise.allSettled([
      all.answer(sessionOf('race'), 'per_1', ONCE, 'user:alice'),
      all.answer(sessionOf('race'), 'per_1', reject, 'user:bob'),
    ]);
    const refused = results.filter((result) => result.status === 'rejected');
    assert.equal(refused.length, 1);
    assert.ok(refused[0]?.reason instanceof ConflictError && refused[0].reason.code === 'request_ended');
    assert.equal(new Set(deliveries).size, 1);
  });

  it('takes the same answer again as the same answer, also after the end', async () => {
    const all = fresh('unreachable');
    const { generation } = await claimed('again');
    await parts.append({ sessionUid: 'again', generation, events: [asked(1, 'per_1', null)] });
    assert.equal((await all.answer(sessionOf('again'), 'per_1', ONCE, BY)).delivered, false);
    assert.equal((await all.answer(sessionOf('again'), 'per_1', ONCE, BY)).delivered, false);
    const replied = anEvent(2, { type: 'permission.replied', data: { id: 'per_1', reply: 'once' } });
    await parts.append({ sessionUid: 'again', generation, events: [replied] });
    assert.equal((await all.answer(sessionOf('again'), 'per_1', ONCE, BY)).delivered, true);
  });

  it('K14 gives a daemon that was not reached the answer with its next report, until it has confirmed it', async () => {
    const all = fresh('unreachable');
    const { generation, podUid } = await claimed('report');
    await parts.append({
      sessionUid: 'report',
      generation,
      events: [asked(1, 'per_1', null), asked(2, 'per_2', null)],
    });
    await all.answer(sessionOf('report'), 'per_1', { ...ONCE, message: 'fine' }, BY);
    assert.deepEqual((await parts.health.errands('report', podUid))?.answers, [
      { id: 'per_1', answer: { kind: 'permission', reply: 'once', message: 'fine' } },
    ]);
    const replied = anEvent(3, { type: 'permission.replied', data: { id: 'per_1', reply: 'once' } });
    await parts.append({ sessionUid: 'report', generation, events: [replied] });
    assert.deepEqual((await parts.health.errands('report', podUid))?.answers, []);
  });

  it('A121 knows no request that was not asked, of the other kind or of another session, and none that ended', async () => {
    const all = fresh();
    const { generation } = await claimed('unknown');
    await parts.append({ sessionUid: 'unknown', generation, events: [asked(1, 'per_1', null)] });
    for (const [uid, id, answer] of [
      ['unknown', 'per_2', ONCE],
      ['answer', 'per_unknown', ONCE],
      ['unknown', 'per_1', { kind: 'question', answers: [['a']] }],
    ] as [string, string, HumanAnswerWire][]) {
      await assert.rejects(
        all.answer(sessionOf(uid), id, answer, BY),
        (error) => error instanceof NotFoundError && error.code === 'request_not_found',
      );
    }
    const replied = anEvent(2, { type: 'permission.replied', data: { id: 'per_1', reply: 'reject' } });
    await parts.append({ sessionUid: 'unknown', generation, events: [replied] });
    await assert.rejects(all.answer(sessionOf('unknown'), 'per_1', ONCE, BY), ConflictError);
    assert.deepEqual(deliveries, []);
  });

  it('A120 refuses answers that do not fit the questions, and stores nothing', async () => {
    const all = fresh();
    const { generation } = await claimed('fit');
    const questions = [
      { question: 'Which?', header: 'pick', options: [{ label: 'A' }, { label: 'B' }], custom: false },
      { question: 'What else?', header: 'more', options: [{ label: 'C' }], multiple: true },
    ];
    await parts.append({ sessionUid: 'fit', generation, events: [askedQuestion(1, 'que_1', questions)] });
    const answer = (answers: string[][]) => all.answer(sessionOf('fit'), 'que_1', { kind: 'question', answers }, BY);
    for (const wrong of [[['A']], [['A', 'B'], ['C']], [['Z'], ['C']]]) {
      await assert.rejects(answer(wrong), (error) => error instanceof InvalidError && error.code === 'invalid_request');
    }
    assert.deepEqual(deliveries, []);
    assert.equal((await answer([['B'], ['C', 'my own']])).view.state, 'answered');
  });

  it('stays small when a sandbox asks very much and very often', async () => {
    const all = fresh();
    const { generation } = await claimed('flood');
    const large = { metadata: { diff: 'x'.repeat(200_000) } };
    for (let batch = 0; batch < 4; batch += 1) {
      const events = Array.from({ length: 40 }, (_, at) =>
        asked(batch * 40 + at + 1, `per_${batch}_${at}`, null, large),
      );
      await parts.append({ sessionUid: 'flood', generation, events });
    }
    const page = await all.listOpen({ limit: 200 }, async (_kind, _namespace, name) => name === 'flood');
    assert.equal(page.items.length, 80);
    assert.ok(JSON.stringify(page).length < 100_000);
    assert.deepEqual([page.items[0]?.data['patterns'], page.items[0]?.data['cut']], [['rm x'], true]);
  });

  it('J12 A121 ends what a lost daemon asked and what it ran, before the one end of its turn', async () => {
    const all = fresh();
    const claim = await claimed('lost');
    const turnId = await parts.take(claim);
    const call = (n: number, callId: string, status: string) =>
      anEvent(n, {
        type: 'message.part.updated',
        turnId,
        data: { part: { id: `prt_${callId}`, messageId: 'm', type: 'tool', tool: 'bash', callId, state: { status } } },
      });
    await parts.append({
      sessionUid: 'lost',
      generation: claim.generation,
      events: [
        anEvent(1, { type: 'turn.started', turnId, data: {} }),
        call(2, 'done', 'running'),
        anEvent(3, { type: 'tool.terminal', turnId, data: { callId: 'done', tool: 'bash', outcome: 'completed' } }),
        call(4, 'open', 'running'),
        call(5, 'waits', 'pending'),
        asked(6, 'per_lost', turnId),
      ],
    });
    await parts.claim('lost', 'pod-2');
    const log = (await parts.log('lost')).slice(6);
    assert.deepEqual(
      log.map((event) => [event.type, event.data['callId'] ?? event.data['id'] ?? event.data['outcome']]),
      [
        ['permission.replied', 'per_lost'],
        ['effect.uncertain', 'open'],
        ['tool.terminal', 'open'],
        ['tool.terminal', 'waits'],
        ['turn.ended', 'Interrupted'],
      ],
    );
    const ended = await all.get(sessionOf('lost'), 'permission', 'per_lost');
    assert.deepEqual([ended.state, ended.outcome], ['ended', 'reject']);
    const seqs = (await parts.log('lost')).map((event) => event.seq);
    assert.deepEqual(
      seqs,
      [...seqs.keys()].map((at) => at + 1),
    );
  });
});
