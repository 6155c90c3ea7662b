// What happened in a session, read from a real database: the folded conversation in pages, search, runs and their events.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { InvalidError, NotFoundError } from '#base/errors.ts';
import { makeSessionReading, type SessionReading } from '#controlplane/app/session-reading.ts';
import { readNewestPlan, readTurnEvents } from '#controlplane/store/events.ts';
import { type Database, firstRow } from '#controlplane/store/statement.ts';
import {
  listMessages,
  listParts,
  listThreads,
  makeCatchUp,
  readReverted,
  searchParts,
} from '#controlplane/store/transcript.ts';
import { getRun, listRuns } from '#controlplane/store/turns.ts';
import { storedEventOf } from '#controlplane/store/whole-event.ts';
import type { DaemonEvent } from '#schema/events/envelope.ts';
import { foldTranscript } from '#schema/rules/fold-transcript.ts';
import { freshDatabase } from '#test/support/postgres.ts';
import { anEvent, aPrompt, aSessionKey, aTurnEnd, storedSessions } from '#test/support/stored-sessions.ts';

describe('reading a session', () => {
  let database: Database;
  let parts: ReturnType<typeof storedSessions>;
  let reading: SessionReading;
  const counters = new Map<string, number>();

  const claimed = async (uid: string) => {
    await parts.inbox.admit(aSessionKey(uid), aPrompt(uid, 'm1'));
    counters.set(uid, 0);
    return parts.claim(uid);
  };
  type Sent = Readonly<Partial<DaemonEvent> & { type: string; data: Record<string, unknown> }>;
  const append = async (uid: string, events: readonly Sent[], generation = 1): Promise<void> => {
    let n = counters.get(uid) ?? 0;
    const numbered = events.map((event) => {
      n += 1;
      return anEvent(n, { ...event, n, id: `evt_${n}` });
    });
    counters.set(uid, n);
    for (let at = 0; at < numbered.length; at += 500) {
      await parts.append({ sessionUid: uid, generation, events: numbered.slice(at, at + 500) });
    }
  };
  const message = (id: string, role = 'user', more: Partial<DaemonEvent> = {}): Sent => ({
    type: 'message.updated',
    data: { message: { id, role } },
    ...more,
  });
  const text = (messageId: string, said: string, more: Partial<DaemonEvent> = {}): Sent => ({
    type: 'message.part.updated',
    data: { part: { id: `prt_${messageId}`, messageId, type: 'text', text: said } },
    ...more,
  });
  const textsOf = async (uid: string, thread = 'root') =>
    (await reading.messages(uid, thread, { limit: 200 }, false)).items.map(
      (item) => `${item.message.id}: ${item.parts.map((part) => part.text).join('|')}`,
    );

  before(async () => {
    database = (await freshDatabase({ poolSize: 8 })).pool;
    parts = storedSessions(database);
    const { query } = database;
    reading = makeSessionReading({
      catchUp: makeCatchUp(database, foldTranscript),
      messages: (uid, thread, below, hidden, limit) => query(listMessages(uid, thread, below, hidden, limit)),
      parts: (uid, ids, hidden) => query(listParts(uid, ids, hidden)),
      revertedFrom: async (uid) => (await firstRow(query, readReverted(uid)))?.ordinal ?? undefined,
      threads: async (uid, limit) => (await query(listThreads(uid, limit))).map((row) => row.thread_id),
      plan: async (uid, thread) => (await firstRow(query, readNewestPlan(uid, thread)))?.data,
      search: (uid, words, limit) => query(searchParts(uid, words, limit)),
      runs: (uid, before_, limit) => query(listRuns(uid, before_, limit)),
      run: (uid, id) => firstRow(query, getRun(uid, id)),
      runEvents: async (uid, id, range, hidden, limit) =>
        (await query(readTurnEvents(uid, id, range, hidden, limit))).map((row) => storedEventOf(row)),
    });
  });

  it('A139 gives the conversation in pages from the newest, and goes on where it ended', async () => {
    await claimed('pages');
    await append(
      'pages',
      Array.from({ length: 45 }, (_, at) => [message(`m${at}`), text(`m${at}`, `said ${at}`)]).flat(),
    );
    const first = await reading.messages('pages', 'root', { limit: 20 }, false);
    assert.deepEqual([first.items[0]?.message.id, first.items.at(-1)?.message.id], ['m25', 'm44']);
    const second = await reading.messages('pages', 'root', { limit: 20, cursor: first.cursor ?? '' }, false);
    const third = await reading.messages('pages', 'root', { limit: 20, cursor: second.cursor ?? '' }, false);
    assert.deepEqual([second.items[0]?.message.id, third.items[0]?.message.id, third.cursor], ['m5', 'm0', null]);
    assert.equal(first.seq, 90);
    await append('pages', [
      message('m45'),
      text('m45', 'more'),
      { type: 'message.part.delta', data: { messageId: 'm45', partId: 'prt_m45', field: 'text', delta: '!' } },
    ]);
    assert.equal((await textsOf('pages')).at(-1), 'm45: more!');
    for (const cursor of ['nonsense', Buffer.from('k:x').toString('base64url')]) {
      await assert.rejects(reading.messages('pages', 'root', { limit: 20, cursor }, false), InvalidError);
    }
  });

  it('folds every event once when many read at once', async () => {
    await claimed('many');
    await append('many', [message('m1'), text('m1', '')]);
    const delta = { messageId: 'm1', partId: 'prt_m1', field: 'text', delta: 'x' };
    await append(
      'many',
      Array.from({ length: 2_500 }, () => ({ type: 'message.part.delta', data: delta })),
    );
    const all = await Promise.all(Array.from({ length: 6 }, () => textsOf('many')));
    for (const texts of all) assert.equal(texts[0]?.length, 'm1: '.length + 2_500);
  });

  it('A125 keeps the conversations of subagents apart, and those that a fork left behind', async () => {
    await claimed('threads');
    await append('threads', [
      message('m1'),
      text('m1', 'root'),
      message('c1', 'user', { threadId: 'child' }),
      text('c1', 'child', { threadId: 'child' }),
      { type: 'session.forked', data: { messageId: 'm1', threadId: 'ses_before' } },
      message('f1'),
      text('f1', 'forked'),
    ]);
    assert.deepEqual(await textsOf('threads'), ['f1: forked']);
    assert.deepEqual(await textsOf('threads', 'child'), ['c1: child']);
    assert.deepEqual(await textsOf('threads', 'ses_before'), ['m1: root']);
    assert.deepEqual(await reading.threads('threads'), ['ses_before', 'child']);
  });

  it('A62 says which messages a rewind leaves out, until the next turn removes them', async () => {
    await claimed('rewind');
    const flags = async () =>
      (await reading.messages('rewind', 'root', { limit: 20 }, false)).items.map((item) => item.reverted);
    await append('rewind', [
      message('m1'),
      message('m2'),
      message('m3'),
      { type: 'session.reverted', data: { messageId: 'm2' } },
    ]);
    assert.deepEqual(await flags(), [false, true, true]);
    await append('rewind', [{ type: 'session.unreverted', data: {} }]);
    assert.deepEqual(await flags(), [false, false, false]);
    await append('rewind', [
      { type: 'session.reverted', data: { messageId: 'm2' } },
      { type: 'turn.started', turnId: 'foreign', data: {} },
      { type: 'message.removed', data: { messageId: 'm2' } },
      { type: 'message.removed', data: { messageId: 'm3' } },
    ]);
    assert.deepEqual(await flags(), [false]);
  });

  it('reads parts that are kept apart for their size, and ends a page before it grows too large', async () => {
    await claimed('large');
    const big = 'b'.repeat(1_500_000);
    await append('large', [message('m1'), text('m1', big)]);
    await append('large', [message('m2'), text('m2', big)]);
    await append('large', [message('m3'), text('m3', big)]);
    const page = await reading.messages('large', 'root', { limit: 20 }, false);
    assert.deepEqual(
      page.items.map((item) => [item.message.id, item.parts[0]?.text?.length]),
      [
        ['m2', 1_500_000],
        ['m3', 1_500_000],
      ],
    );
    const rest = await reading.messages('large', 'root', { limit: 20, cursor: page.cursor ?? '' }, false);
    assert.deepEqual([rest.items.length, rest.cursor], [1, null]);
  });

  it('searches only the text that people see, of this session alone', async () => {
    await claimed('search');
    await claimed('search-other');
    await append('search', [
      message('m1'),
      text('m1', 'The bumblebee hums'),
      message('m2', 'assistant'),
      text('m2', 'A hidden bumblebee', { hidden: true }),
      {
        type: 'message.part.updated',
        data: { part: { id: 'r', messageId: 'm2', type: 'reasoning', text: 'bumblebee?' } },
      },
      {
        type: 'message.part.updated',
        data: { part: { id: 's', messageId: 'm2', type: 'text', synthetic: true, text: 'bumblebee!' } },
      },
      {
        type: 'message.part.updated',
        data: { part: { id: 'n', messageId: 'm2', type: 'text', text: 'a NUL \u0000 wasp' } },
      },
    ]);
    await append('search-other', [message('o1'), text('o1', 'another bumblebee')]);
    const ids = async (words: string) => (await reading.search('search', words, 20)).map((hit) => hit.message_id);
    assert.deepEqual(await ids('bumblebee'), ['m1']);
    assert.deepEqual(await ids('"the bumblebee" -wasp'), ['m1']);
    assert.deepEqual(await ids('wasp'), ['m2']);
    for (const hostile of ["'; drop table messages; --", '((((&&&|||!!!', ':*:*', '\\', '%', '-', 'or or or']) {
      assert.ok(Array.isArray(await ids(hostile)), hostile);
    }
    const [hit] = await reading.search('search', 'hums', 20);
    assert.match(hit?.snippet ?? '', /bumblebee hums/);
  });

  it('lists runs, newest first, and the events of one from its start to its end', async () => {
    const claim = await claimed('runs');
    const first = await parts.take(claim);
    await append('runs', [
      { type: 'turn.started', turnId: first, data: {} },
      text('m1', 'one', { turnId: first }),
      { ...text('m1', 'secret', { turnId: first }), hidden: true },
      { type: 'session.status', turnId: null, data: { status: 'idle' } },
      aTurnEnd(0, first) as Sent,
    ]);
    await parts.inbox.admit(aSessionKey('runs'), aPrompt('runs', 'm2'));
    const second = await parts.take(claim);
    await append('runs', [{ type: 'turn.started', turnId: second, data: {} }]);
    const page = await reading.runs('runs', { limit: 1 });
    const rest = await reading.runs('runs', { limit: 1, cursor: page.cursor ?? '' });
    assert.deepEqual([page.items[0]?.id, page.items[0]?.outcome], [second, null]);
    assert.deepEqual([rest.items[0]?.id, rest.items[0]?.outcome, rest.cursor], [first, 'Succeeded', null]);
    const types = async (hidden: boolean) =>
      (await reading.runEvents('runs', first, { limit: 50 }, hidden)).items.map((event) => event.type);
    assert.deepEqual(await types(false), ['turn.started', 'message.part.updated', 'turn.ended']);
    assert.equal((await types(true)).length, 4);
    const one = await reading.runEvents('runs', first, { limit: 1 }, false);
    const next = await reading.runEvents('runs', first, { limit: 1, cursor: one.cursor ?? '' }, false);
    assert.equal(next.items[0]?.type, 'message.part.updated');
    for (const foreign of ['trn_nobody', "x' or 1=1"]) {
      await assert.rejects(reading.runEvents('runs', foreign, { limit: 1 }, false), NotFoundError);
    }
    await assert.rejects(reading.runEvents('pages', first, { limit: 1 }, false), NotFoundError);
  });

  it('A63 gives the newest plan, and none where there is none', async () => {
    await claimed('plan');
    const plan = (content: string): Sent => ({
      type: 'todo.updated',
      data: { todos: [{ content, status: 'pending', priority: 'high' }, 'garbage'] },
    });
    assert.deepEqual(await reading.plan('plan', 'root'), []);
    await append('plan', [plan('old'), plan('new'), { ...plan('of a child'), threadId: 'child' }]);
    assert.deepEqual(await reading.plan('plan', 'root'), [{ content: 'new', status: 'pending', priority: 'high' }]);
  });

  it('gives nothing, and fails for nothing, of a session that the database does not know', async () => {
    const page = await reading.messages('nobody', 'root', { limit: 20 }, false);
    assert.deepEqual(page, { items: [], cursor: null, seq: 0 });
    assert.deepEqual(await reading.search('nobody', 'x', 5), []);
    assert.deepEqual((await reading.runs('nobody', { limit: 5 })).items, []);
  });
});
