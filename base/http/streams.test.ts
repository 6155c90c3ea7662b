// Streams and stops of a server on real sockets: events, values, raw bodies, slow and forbidden readers.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { ConflictError, ForbiddenError, UnavailableError } from '#base/errors.ts';
import {
  type Caller,
  errorOf,
  facts,
  follow,
  guard,
  HEAD,
  type HttpRig,
  JSON_HEADERS,
  openHealth,
  startHttpRig,
} from '#test/support/http-rig.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { until } from '#test/support/until.ts';
import { createClient } from './client.ts';
import { listen } from './listen.ts';
import { answer, type Guard, mount, mountNdjson, mountSse } from './mount.ts';
import { createHttpServer } from './server.ts';

let rig: HttpRig;
before(async () => {
  rig = await startHttpRig();
});
after(() => rig.stop());

test('server-sent events arrive in order with their ids, and an early error is a plain answer', async () => {
  const seen = [];
  for await (const event of await rig.client().sse(follow, { query: { mode: 'few' } })) seen.push(event);
  assert.deepEqual(
    seen,
    [1, 2, 3].map((n) => ({ id: String(n), event: 'tick', data: { n } })),
  );
  await assert.rejects(rig.client().sse(follow, { query: { mode: 'fail' } }), ConflictError);
});

test('NDJSON values arrive in order', async () => {
  const seen = [];
  for await (const value of await rig.client().ndjson(facts, {})) seen.push(value.n);
  assert.deepEqual(seen, [0, 1, 2, 3, 4]);
});

test('a reader that leaves more than 256 KiB unread is dropped', async () => {
  const socket = connect(rig.port, '127.0.0.1', () =>
    socket.write(`GET /v1/follow?mode=flood HTTP/1.1\r\n${HEAD}\r\n`),
  );
  socket.on('error', () => {});
  socket.pause();
  await until('the reader is dropped', () => rig.ended.length > 0);
  socket.destroy();
  assert.deepEqual(rig.ended, ['slow']);
});

test('a silent stream carries heartbeats, and breaks for a reader that waits less than that', async () => {
  const socket = connect(rig.port, '127.0.0.1', () => socket.write(`GET /v1/follow?mode=wait HTTP/1.1\r\n${HEAD}\r\n`));
  let text = '';
  socket.setEncoding('utf8');
  await new Promise<void>((resolve) => {
    socket.on('data', (part: string) => {
      text += part;
      if (text.split(': heartbeat').length > 2) resolve();
    });
  });
  socket.destroy();
  const events = await rig.client().sse(follow, { query: { mode: 'wait' } }, { silenceMs: 5 });
  await assert.rejects(
    async () => {
      for await (const event of events) assert.equal(event.event, 'hello');
    },
    (error: unknown) => error instanceof UnavailableError && /went silent/.test(error.message),
  );
});

test('a raw route streams its body, and its guard comes first', async () => {
  const reply = await rig.send('POST', '/v1/raw/x', {
    headers: { 'content-type': 'application/x-git' },
    body: 'x'.repeat(2_000_000),
  });
  assert.deepEqual([reply.status, reply.text], [200, '2000000']);
  const bad = await rig.send('POST', '/v1/raw/bad', { headers: JSON_HEADERS, body: '{}' });
  assert.deepEqual([bad.status, errorOf(bad).message], [400, 'not this one']);
  const nobody = await rig.send('POST', '/v1/raw/x', { headers: { authorization: 'Bearer bad' }, body: 'x' });
  assert.equal(nobody.status, 401);
});

test('a stop lets a request end, ends streams, and opens the port again', async () => {
  const other = createHttpServer({ listener: 'public', log: rig.log, clock: systemClock });
  let entered = (): void => {};
  const isIn = new Promise<void>((resolve) => {
    entered = resolve;
  });
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  mount(
    other,
    openHealth,
    async () => {
      entered();
      await gate;
      return answer(200, { ok: true });
    },
    guard,
  );
  mountSse(
    other,
    follow,
    async ({ signal }, writer) => {
      writer.send({ event: 'hello', data: {} });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
    guard,
  );
  const port = await listen(other, { port: 0, host: '127.0.0.1' });
  const own = createClient({
    baseUrl: port.url,
    token: () => 'good',
    peer: 'it',
    unreachable: 'control_plane_unavailable',
  });
  const slow = own.call(openHealth, {});
  const events = await own.sse(follow, { query: { mode: 'wait' } });
  await isIn;
  const stopped = port.stop(5_000);
  const seen = [];
  for await (const event of events) seen.push(event.event);
  assert.deepEqual(seen, ['hello']);
  release();
  assert.deepEqual(await slow, { status: 200, body: { ok: true } });
  await stopped;
});

test('20-control-plane §1 a reader who may no longer read is told so by the last event, also before the first one', async () => {
  const clock = manualClock();
  const own = createHttpServer({ listener: 'public', log: rig.log, clock });
  const ends: (string | undefined)[] = [];
  let isAllowed = true;
  let begun = 0;
  const strict: Guard<Caller> = {
    ...guard,
    recheck: async () => {
      if (!isAllowed) throw new ForbiddenError('forbidden', 'ann may not read this');
    },
  };
  const wait = (signal: AbortSignal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
  mountSse(
    own,
    follow,
    async ({ query, signal }, writer) => {
      if (query.mode === 'wait') writer.send({ event: 'hello', data: {} });
      begun += 1;
      await wait(signal);
      ends.push(writer.ended());
    },
    strict,
  );
  mountNdjson(
    own,
    facts,
    async ({ signal }, writer) => {
      begun += 1;
      await wait(signal);
      ends.push(writer.ended());
    },
    strict,
  );
  const port = await listen(own, { port: 0, host: '127.0.0.1' });
  const open = (path: string) => fetch(`${port.url}${path}`, { headers: { authorization: 'Bearer good' } });
  const answers = [open('/v1/follow?mode=wait'), open('/v1/follow?mode=few'), open('/v1/facts')];
  await until('all have begun', () => begun === 3);
  await clock.advance(4_000);
  assert.deepEqual(ends, []);
  isAllowed = false;
  await clock.advance(4_000);
  const [told, silent, lines] = await Promise.all(answers.map(async (answer) => (await answer).text()));
  const last = /event: error\ndata: (.*)\n\n$/;
  for (const text of [told, silent]) {
    const { error } = JSON.parse(last.exec(text ?? '')?.[1] ?? '{}') as { error: { code: string; requestId: string } };
    assert.equal(error.code, 'forbidden', text);
    assert.match(error.requestId, /^[0-9a-f-]{36}$/);
  }
  assert.equal(told?.startsWith('event: hello\n'), true);
  assert.equal(lines?.trim(), '');
  assert.deepEqual(ends, ['revoked', 'revoked', 'revoked']);
  assert.equal(clock.pending(), 0, 'nothing is left to wait for');
  await port.stop(1_000);
});
