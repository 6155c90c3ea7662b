// Streams of event logs over a real Postgres and real sockets: exact resume, reset, sharing, slow readers, lost news.
import assert from 'node:assert/strict';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { readSse } from '#base/http/read-stream.ts';
import { openStream, STREAM_CAP_BYTES } from '#base/http/stream-writer.ts';
import { makeFanOut, parseGrown } from '#controlplane/events/fan-out.ts';
import { EVENTS_CHANNEL, readEvents, readLogRange } from '#controlplane/store/events.ts';
import { makeListener } from '#controlplane/store/listen.ts';
import { cutLog } from '#controlplane/store/retention.ts';
import { firstRow } from '#controlplane/store/statement.ts';
import { storedEvent } from '#schema/events/envelope.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { AT, anEvent, storedSessions } from '#test/support/stored-sessions.ts';
import { until } from '#test/support/until.ts';

let database: TestDatabase;
let parts: ReturnType<typeof storedSessions>;
let reads = 0;

/** A replica: streams over HTTP, told by LISTEN. The path names the session. */
const startReplica = async () => {
  const { query } = database.pool;
  const fanOut = makeFanOut({
    readEvents: (uid, afterSeq, limit) => {
      reads += 1;
      return query(readEvents(uid, afterSeq, limit));
    },
    readRange: async (uid) => {
      const row = await firstRow(query, readLogRange(uid));
      return row && { firstSeq: row.first_seq, headSeq: row.head_seq };
    },
    clock: systemClock,
    onError: () => undefined,
    onOpen: () => undefined,
    stuckMs: 500,
  });
  const listener = makeListener({
    databaseUrl: database.databaseUrl,
    channels: [EVENTS_CHANNEL],
    onMessage: (_channel, payload) => {
      for (const { sessionUid, headSeq } of parseGrown(payload)) fanOut.grew(sessionUid, headSeq);
    },
    onGap: fanOut.gap,
    onError: () => undefined,
    clock: systemClock,
    random: Math.random,
  });
  const ends: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const since = url.searchParams.get('since');
    const stream = openStream({ response, clock: systemClock, headers: {}, heartbeat: () => ': heartbeat\n\n' });
    const asked = {
      sessionUid: url.pathname.slice(1),
      lastEventId: request.headers['last-event-id'] as string | undefined,
      since: since === null ? undefined : Number(since),
      follow: url.searchParams.get('follow') !== 'false',
      hidden: url.searchParams.get('hidden') === 'true',
    };
    void fanOut.stream(asked, stream.writer).finally(() => {
      stream.end('finished');
      ends.push(stream.writer.ended());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  listener.start();
  await until('the replica listens', listener.isConnected);
  return {
    port: (server.address() as AddressInfo).port,
    fanOut,
    ends,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await listener.stop();
    },
  };
};

let replica: Awaited<ReturnType<typeof startReplica>>;
before(async () => {
  database = await freshDatabase({ poolSize: 12 });
  parts = storedSessions(database.pool);
  replica = await startReplica();
});
after(() => replica.stop());

const open = (path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: replica.port, path, headers, agent: false }, resolve).on('error', reject);
  });

type Got = { event: string; id: string | undefined; data: Record<string, unknown> };

/** Reads a stream into a list until it ends or `close` is called. */
const read = async (path: string, headers: Record<string, string> = {}) => {
  const response = await open(path, headers);
  const got: Got[] = [];
  const done = (async () => {
    try {
      for await (const frame of readSse(response)) {
        got.push({ event: frame.event, id: frame.id, data: JSON.parse(frame.data) as Record<string, unknown> });
      }
    } catch {
      // Closed by this side, or dropped by the other.
    }
  })();
  const seqs = () =>
    got.filter((frame) => frame.event !== 'hello' && frame.event !== 'reset').map((frame) => Number(frame.id));
  return { got, seqs, done, close: () => response.destroy() };
};

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

const grow = async (uid: string, generation: number, from: number, to: number, text = '') => {
  const events = range(from, to).map((n) => anEvent(n, text === '' ? {} : { data: { text } }));
  for (let at = 0; at < events.length; at += 100) {
    await parts.append({ sessionUid: uid, generation, events: events.slice(at, at + 100) });
  }
};

test('20-control-plane §8 a stream opens with hello, replays the log, and goes on with what comes', async () => {
  const { generation } = await parts.claim('replay');
  await grow('replay', generation, 1, 450);
  const stream = await read('/replay');
  await until('the history is read', () => stream.seqs().length === 450);
  await grow('replay', generation, 451, 500);
  await until('the new events are read', () => stream.seqs().length === 500);
  assert.deepEqual(stream.seqs(), range(1, 500));
  assert.deepEqual(stream.got[0]?.data, { sessionUid: 'replay', firstSeq: 1, headSeq: 450 });
  for (const frame of stream.got.slice(1)) assert.ok(storedEvent.safeParse(frame.data).success, JSON.stringify(frame));
  stream.close();
});

test('FD5 Last-Event-ID and since resume exactly, and follow=false ends at the head', async () => {
  const { generation } = await parts.claim('resume');
  await grow('resume', generation, 1, 30);
  const byHeader = await read('/resume?follow=false', { 'last-event-id': '17' });
  await byHeader.done;
  assert.deepEqual(byHeader.seqs(), range(18, 30));
  const bySince = await read('/resume?follow=false&since=29');
  await bySince.done;
  assert.deepEqual(bySince.seqs(), [30]);
  const atHead = await read('/resume?follow=false&since=30');
  await atHead.done;
  assert.deepEqual([atHead.seqs(), atHead.got.length], [[], 1]);
});

test('FD5 a pruned, a future and an unreadable position get reset with the first event there is', async () => {
  const { generation } = await parts.claim('reset');
  await grow('reset', generation, 1, 30);
  await cutLog(database.pool, 'reset', 10);
  for (const id of ['4', '99', 'not-ours']) {
    const stream = await read('/reset?follow=false', { 'last-event-id': id });
    await stream.done;
    assert.equal(stream.got[1]?.event, 'reset', id);
    assert.deepEqual(stream.got[1]?.data, { sessionUid: 'reset', firstSeq: 11, headSeq: 30 });
    assert.deepEqual(stream.seqs(), range(11, 30));
  }
  const exact = await read('/reset?follow=false&since=10');
  await exact.done;
  assert.ok(exact.got.every((frame) => frame.event !== 'reset'));
  assert.deepEqual(exact.seqs(), range(11, 30));
});

test('hidden events are left out unless asked for, and a type that is no word cannot break the framing', async () => {
  const { generation } = await parts.claim('hidden');
  await parts.append({
    sessionUid: 'hidden',
    generation,
    events: [anEvent(1), anEvent(2, { hidden: true }), anEvent(3, { type: 'evil\n\nid: 9\ndata: x' })],
  });
  const visible = await read('/hidden?follow=false');
  await visible.done;
  assert.deepEqual(visible.seqs(), [1, 3]);
  assert.equal(visible.got.at(-1)?.event, 'unknown');
  const all = await read('/hidden?follow=false&hidden=true');
  await all.done;
  assert.deepEqual(all.seqs(), [1, 2, 3]);
});

test('twenty readers of one session share its reads and all see every event', async () => {
  const { generation } = await parts.claim('shared');
  const streams = await Promise.all(Array.from({ length: 20 }, () => read('/shared')));
  await until('all are open', () => streams.every((stream) => stream.got.length === 1));
  const readsBefore = reads;
  for (let n = 1; n <= 40; n += 1) await grow('shared', generation, n, n);
  await until('all have everything', () => streams.every((stream) => stream.seqs().length === 40));
  for (const stream of streams) {
    assert.deepEqual(stream.seqs(), range(1, 40));
    stream.close();
  }
  assert.ok(reads - readsBefore <= 80, `${reads - readsBefore} reads for 40 appends and 20 readers`);
  await until('the tail is given up', () => replica.fanOut.usage().tails === 0);
});

test('FD4 a reader that never reads is dropped within its bound and resumes, and the others lose nothing', async () => {
  const { generation } = await parts.claim('slow');
  const stuck = await open('/slow');
  stuck.pause();
  const brisk = await read('/slow');
  await until('both are open', () => replica.fanOut.usage().readers === 2);
  const text = 'x'.repeat(20_000);
  const total = 600;
  for (let n = 1; n <= total; n += 20) await grow('slow', generation, n, n + 19, text);
  await until('the brisk reader has all', () => brisk.seqs().length === total);
  await until('the stuck reader was dropped', () => replica.ends.includes('slow'));
  assert.deepEqual(brisk.seqs(), range(1, total));
  assert.ok(total * text.length > 4 * STREAM_CAP_BYTES);
  stuck.destroy();
  const again = await read('/slow?follow=false', { 'last-event-id': '3' });
  await again.done;
  assert.deepEqual(again.seqs(), range(4, total));
  brisk.close();
});

test('news that a replica missed reaches its readers when it listens again', async () => {
  const { generation } = await parts.claim('missed');
  const stream = await read('/missed');
  await until('it is open', () => stream.got.length === 1);
  const cut = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'beeuni-listen' and datname = current_database()`;
  await Promise.all([parts.rows(cut), grow('missed', generation, 1, 5)]);
  await until('everything arrived', () => stream.seqs().length === 5);
  assert.deepEqual(stream.seqs(), range(1, 5));
  stream.close();
});

test('a stream ends when its session is removed', async () => {
  const { generation } = await parts.claim('removed');
  await grow('removed', generation, 1, 3);
  const stream = await read('/removed');
  await until('the history is read', () => stream.seqs().length === 3);
  await parts.ends.remove('removed', AT);
  replica.fanOut.changed('removed');
  await stream.done;
  assert.deepEqual(stream.seqs().slice(0, 3), [1, 2, 3]);
});
