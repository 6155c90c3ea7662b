// The server, its mount and the client against each other on real sockets: bad input, bounds, streams, errors.
import assert from 'node:assert/strict';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { systemClock } from '#base/clock.ts';
import {
  ConflictError,
  ForbiddenError,
  InvalidError,
  LimitError,
  UnauthenticatedError,
  UnavailableError,
} from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import { defineRoute } from '#schema/define-route.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { until } from '#test/support/until.ts';
import { createClient } from './client.ts';
import { type Listening, listen } from './listen.ts';
import { answer, type Guard, mount, mountNdjson, mountSse } from './mount.ts';
import { mountRaw } from './raw-route.ts';
import { createHttpServer } from './server.ts';

const thing = z.object({
  name: z.string().max(8),
  size: z.int().min(1).default(1),
  tags: z.array(z.string()).default([]),
});
const base = { listener: 'public', auth: { kind: 'pod' }, summary: 's' } as const;
const makeThing = defineRoute({
  ...base,
  operationId: 'makeThing',
  method: 'POST',
  path: '/v1/things/:id',
  params: z.object({ id: z.string().regex(/^[a-z]{1,8}$/) }),
  query: z.object({ dry: z.enum(['true', 'false']).default('false') }),
  body: thing,
  responses: { 201: thing.extend({ id: z.string(), dry: z.string() }) },
});
const getThing = defineRoute({
  ...base,
  operationId: 'getThing',
  method: 'GET',
  path: '/v1/things/:id',
  params: z.object({ id: z.string() }),
  responses: { 200: z.object({ id: z.string() }) },
});
const dropThing = defineRoute({
  ...base,
  operationId: 'dropThing',
  method: 'DELETE',
  path: '/v1/things/:id',
  params: z.object({ id: z.string() }),
  responses: { 204: z.null() },
});
const openHealth = defineRoute({
  ...base,
  auth: { kind: 'anyone' },
  operationId: 'openHealth',
  method: 'GET',
  path: '/v1/open',
  responses: { 200: z.object({ ok: z.boolean() }) },
});
const follow = defineRoute({
  ...base,
  operationId: 'follow',
  method: 'GET',
  path: '/v1/follow',
  query: z.object({ mode: z.enum(['few', 'flood', 'fail', 'wait']) }),
  stream: 'sse',
  responses: { 200: z.object({ n: z.int() }) },
});
const facts = defineRoute({
  ...base,
  operationId: 'facts',
  method: 'GET',
  path: '/v1/facts',
  stream: 'ndjson',
  responses: { 200: z.object({ n: z.int() }) },
});
const raw = defineRoute({
  ...base,
  operationId: 'raw',
  method: 'POST',
  path: '/v1/raw/:id',
  params: z.object({ id: z.string() }),
  responses: { 200: z.unknown() },
});

type Caller = Readonly<{ name: string }>;
const guard: Guard<Caller> = {
  authenticate: async ({ route, header }) => {
    if (route.auth.kind === 'anyone') return { name: 'nobody' };
    if (header('authorization') !== 'Bearer good') throw new UnauthenticatedError('send a bearer token');
    return { name: 'ann' };
  },
  authorize: async ({ params }) => {
    if (params['id'] === 'busy') throw new LimitError('rate_limited', 'too many', { retryAfterMs: 1_500 });
  },
};

const logged: string[] = [];
const log = createLogger({ level: 'info', write: (line) => logged.push(line) });
let listening: Listening;
let floodEnd: string | undefined;
const aborts: string[] = [];
const server = createHttpServer({ listener: 'public', log, maxUnauthenticatedConnections: 8 });

before(async () => {
  mount(
    server,
    makeThing,
    async ({ params, body, query }) => answer(201, { ...body, id: params.id, dry: query.dry }),
    guard,
  );
  mount(
    server,
    getThing,
    async ({ params, signal }) => {
      if (params.id === 'bug') throw new TypeError('the secret is hunter2-hunter2');
      if (params.id === 'wrong') return answer(200, { id: 7 as unknown as string });
      if (params.id === 'gone') throw new ConflictError('superseded', 'a newer one exists');
      if (params.id === 'hang') {
        await new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            aborts.push('hang');
            resolve();
          });
        });
      }
      return answer(200, { id: params.id, extra: 'never leaves' } as { id: string });
    },
    guard,
  );
  mount(server, dropThing, async () => answer(204, null), guard);
  mount(server, openHealth, async () => answer(200, { ok: true }), guard);
  mountSse(
    server,
    follow,
    async ({ query, signal }, writer) => {
      if (query.mode === 'fail') throw new ConflictError('session_failed', 'it failed');
      if (query.mode === 'few') {
        for (let n = 1; n <= 3; n += 1) writer.send({ id: String(n), event: 'tick', data: { n } });
        return;
      }
      if (query.mode === 'wait') {
        writer.send({ event: 'hello', data: {} });
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return;
      }
      const data = { n: 1, text: 'x'.repeat(16_384) };
      while (writer.send({ data })) await new Promise((resolve) => setImmediate(resolve));
      floodEnd = writer.ended();
    },
    guard,
    { heartbeatMs: 20 },
  );
  mountNdjson(
    server,
    facts,
    async (_request, writer) => {
      for (let n = 0; n < 5; n += 1) {
        writer.send({ n });
        await writer.drained();
      }
    },
    guard,
  );
  mountRaw(
    server,
    {
      route: raw,
      handler: async ({ params, request, response }) => {
        if (params['id'] === 'bad') throw new InvalidError('invalid_request', 'not this one');
        let size = 0;
        for await (const chunk of request) size += (chunk as Buffer).length;
        response.end(String(size));
      },
    },
    guard,
  );
  listening = await listen(server, { port: 0, host: '127.0.0.1' });
});
after(async () => {
  await listening.stop(1_000);
});

type Reply = Readonly<{ status: number; headers: IncomingMessage['headers']; text: string }>;
const send = (
  method: string,
  path: string,
  options: { headers?: Record<string, string | string[]>; body?: string | Buffer } = {},
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const call = httpRequest(
      {
        port: listening.port,
        host: '127.0.0.1',
        method,
        path,
        headers: { authorization: 'Bearer good', ...options.headers },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      },
    );
    call.on('error', reject);
    call.end(options.body);
  });

/** Sends bytes as they are and gives back all that is answered until the server closes or one answer came. */
const sendBytes = (bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(listening.port, '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => {
      text += part;
      if (text.includes('\r\n\r\n')) socket.end();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });

const json = { 'content-type': 'application/json' };
const errorOf = (reply: Reply) => {
  const body = JSON.parse(reply.text) as {
    error: { code: string; message: string; requestId: string; details?: unknown };
  };
  return body.error;
};

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const refused: readonly [
  name: string,
  options: { headers?: Record<string, string | string[]>; body?: string | Buffer },
  status: number,
  code: string,
  message: RegExp,
][] = [
  ['a body that is not JSON', { headers: json, body: '{' }, 400, 'invalid_json', /^the body is not valid JSON$/],
  [
    'a body that is not UTF-8',
    { headers: json, body: Buffer.from([0x22, 0xff, 0x22]) },
    400,
    'invalid_json',
    /^the body is not valid UTF-8$/,
  ],
  ['nesting above 64', { headers: json, body: nested(65) }, 400, 'invalid_json', /^the body is nested deeper than 64$/],
  ['nesting of 100,000', { headers: json, body: nested(100_000) }, 400, 'invalid_json', /deeper than 64/],
  [
    'the key __proto__',
    { headers: json, body: '{"name":"a","__proto__":{"size":3}}' },
    400,
    'invalid_json',
    /__proto__/,
  ],
  [
    'an escaped __proto__',
    { headers: json, body: '{"name":"a","\\u005f_proto__":{}}' },
    400,
    'invalid_json',
    /__proto__/,
  ],
  ['a key twice', { headers: json, body: '{"name":"a","name":"b"}' }, 400, 'invalid_json', /same key twice/],
  ['a missing field', { headers: json, body: '{}' }, 400, 'invalid_request', /^body\.name is required$/],
  ['no body at all', {}, 400, 'invalid_request', /^body\.name is required$/],
  ['a wrong type', { headers: json, body: '{"name":7}' }, 400, 'invalid_request', /^body\.name must be a string$/],
  [
    'a long text',
    { headers: json, body: '{"name":"123456789"}' },
    400,
    'invalid_request',
    /^body\.name must be at most 8 characters$/,
  ],
  [
    'a wrong entry',
    { headers: json, body: '{"name":"a","tags":["b",1]}' },
    400,
    'invalid_request',
    /^body\.tags\[1\] must be a string$/,
  ],
  ['two wrong fields', { headers: json, body: '{"name":7,"size":"1"}' }, 400, 'invalid_request', /\(and 1 more\)$/],
  [
    'an unknown field',
    { headers: json, body: '{"name":"a","colour":"red"}' },
    400,
    'unknown_field',
    /^body\.colour is not a field/,
  ],
  ['a list for an object', { headers: json, body: '[]' }, 400, 'invalid_request', /^body must be an object$/],
  [
    'a body above 1 MiB',
    { headers: json, body: `{"name":"${'x'.repeat(1_048_577)}"}` },
    413,
    'body_too_large',
    /above the limit/,
  ],
  [
    'a text type',
    { headers: { 'content-type': 'text/plain' }, body: '{}' },
    415,
    'unsupported_media_type',
    /must be application\/json/,
  ],
  [
    'a type with more behind it',
    { headers: { 'content-type': 'application/json;x=1' }, body: '{}' },
    415,
    'unsupported_media_type',
    /./,
  ],
  [
    'a form',
    { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=b' },
    415,
    'unsupported_media_type',
    /./,
  ],
  ['no type with a body', { body: '{"name":"a"}' }, 415, 'unsupported_media_type', /./],
  [
    'a compressed body',
    { headers: { ...json, 'content-encoding': 'gzip' }, body: 'x' },
    415,
    'unsupported_media_type',
    /compressed/,
  ],
];
for (const [name, options, status, code, message] of refused) {
  test(`refuses ${name} with ${status} ${code}`, async () => {
    const reply = await send('POST', '/v1/things/abc', options);
    const error = errorOf(reply);
    assert.equal(reply.status, status, reply.text);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.equal(reply.headers['x-request-id'], error.requestId);
    assert.equal(({} as Record<string, unknown>)['size'], undefined);
  });
}

const head = `host: x\r\nauthorization: Bearer good\r\n`;
const hostile: readonly [name: string, bytes: string, answer: RegExp][] = [
  [
    'a second content-length',
    `POST /v1/things/abc HTTP/1.1\r\n${head}content-type: application/json\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}`,
    /^HTTP\/1.1 400 /,
  ],
  [
    'content-length with chunks',
    `POST /v1/things/abc HTTP/1.1\r\n${head}content-type: application/json\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1.1 400 /,
  ],
  [
    'a second content-type',
    `POST /v1/things/abc HTTP/1.1\r\n${head}content-type: application/json\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}`,
    /^HTTP\/1.1 415 [^]*content-type was sent more than once/,
  ],
  [
    'a second authorization',
    `GET /v1/things/abc HTTP/1.1\r\n${head}authorization: Bearer bad\r\n\r\n`,
    /^HTTP\/1.1 400 [^]*authorization was sent more than once/,
  ],
  [
    'a tab inside the content-type',
    `POST /v1/things/abc HTTP/1.1\r\n${head}content-type: application/json\t;a\r\ncontent-length: 2\r\n\r\n{}`,
    /^HTTP\/1.1 415 /,
  ],
  [
    'a bare line feed in a header',
    `GET /v1/things/abc HTTP/1.1\r\nhost: x\r\nx-a: b\nx-c\r\n\r\n`,
    /^HTTP\/1.1 400 [^]*not valid HTTP/,
  ],
  [
    'a head above 16 KiB',
    `GET /v1/things/abc HTTP/1.1\r\n${head}x-long: ${'a'.repeat(17_000)}\r\n\r\n`,
    /^HTTP\/1.1 431 [^]*16384/,
  ],
  ['no host', `GET /v1/things/abc HTTP/1.1\r\nauthorization: Bearer good\r\n\r\n`, /^HTTP\/1.1 400 /],
  ['another protocol', 'SSH-2.0-x\r\n\r\n', /^HTTP\/1.1 400 [^]*not valid HTTP/],
];
for (const [name, bytes, answer] of hostile) {
  test(`FC10 refuses ${name}`, async () => {
    assert.match(await sendBytes(bytes), answer);
  });
}

test('FC10 validates the body behind a content type with blanks around it', async () => {
  const text = await sendBytes(
    `POST /v1/things/abc HTTP/1.1\r\n${head}content-type:   application/json\t\r\ncontent-length: 2\r\n\r\n{}`,
  );
  assert.match(text, /^HTTP\/1.1 4(00|15) /);
});

test('answers an upgrade as a plain request', async () => {
  const text = await sendBytes(`GET /v1/open HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`);
  assert.match(text, /^HTTP\/1.1 200 /);
});

test('asks who calls before it reads a body', async () => {
  const reply = await sendBytes(
    `POST /v1/things/abc HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900000\r\n\r\n`,
  );
  assert.match(reply, /^HTTP\/1.1 401 [^]*send a bearer token/);
  assert.match(reply, /www-authenticate: Bearer/i);
});

test('refuses a param, a query and an unknown route with a sentence each', async () => {
  const param = await send('POST', '/v1/things/ABC', { headers: json, body: '{"name":"a"}' });
  assert.equal(errorOf(param).message, 'path.id does not have the form that is asked for');
  const query = await send('POST', '/v1/things/abc?dry=maybe', { headers: json, body: '{"name":"a"}' });
  assert.equal(errorOf(query).message, 'query.dry must be one of true, false');
  const more = await send('POST', '/v1/things/abc?dri=true', { headers: json, body: '{"name":"a"}' });
  assert.equal(errorOf(more).code, 'unknown_field');
  const route = await send('GET', '/v1/nothing');
  assert.deepEqual([route.status, errorOf(route).code], [404, 'not_found']);
  const broken = await send('GET', '/v1/things/%zz');
  assert.deepEqual([broken.status, errorOf(broken).code], [400, 'invalid_request']);
});

test('FF12 refuses a change that a page of another site asks for', async () => {
  const body = '{"name":"a"}';
  for (const origin of ['https://evil.example', 'null', `http://127.0.0.1:${listening.port + 1}`]) {
    const reply = await send('POST', '/v1/things/abc', { headers: { ...json, origin }, body });
    assert.deepEqual([reply.status, errorOf(reply).code], [403, 'forbidden'], origin);
    assert.equal(reply.headers['access-control-allow-origin'], undefined);
  }
  const own = `http://127.0.0.1:${listening.port}`;
  assert.equal((await send('POST', '/v1/things/abc', { headers: { ...json, origin: own }, body })).status, 201);
});

test('FC9 refuses 100 MB in chunks early, and ends the connection', async () => {
  const socket = connect(listening.port, '127.0.0.1');
  let text = '';
  let sent = 0;
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
  const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.on('error', () => {});
  socket.on('data', (part) => {
    text += part.toString();
  });
  socket.write(
    `POST /v1/things/abc HTTP/1.1\r\n${head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
  while (sent < 1_600 && !socket.destroyed && text === '') {
    socket.write(chunk);
    sent += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ended;
  assert.match(text, /^HTTP\/1.1 413 [^]*body_too_large/);
  assert.ok(sent < 400, `sent ${sent} chunks of 64 KiB`);
});

test('refuses a body on a route that takes none', async () => {
  const reply = await send('DELETE', '/v1/things/abc', { headers: { ...json, 'content-length': '2' }, body: '{}' });
  assert.deepEqual([reply.status, errorOf(reply).message], [400, 'this route takes no body']);
});

test('lets nothing leave that the route does not declare', async () => {
  const reply = await send('GET', '/v1/things/abc');
  assert.deepEqual(JSON.parse(reply.text), { id: 'abc' });
});

test('answers a bug with 500 and keeps its text in the log', async () => {
  const reply = await send('GET', '/v1/things/bug');
  assert.deepEqual([reply.status, errorOf(reply).code], [500, 'internal']);
  assert.doesNotMatch(reply.text, /hunter2/);
  const record = logged.find((line) => line.includes(errorOf(reply).requestId));
  assert.match(record ?? '', /TypeError/);
  const undeclared = await send('GET', '/v1/things/wrong');
  assert.equal(undeclared.status, 500);
});

test('ends the signal when the caller leaves', async () => {
  const before = aborts.length;
  const socket = connect(listening.port, '127.0.0.1', () =>
    socket.write(`GET /v1/things/hang HTTP/1.1\r\n${head}\r\n`, () => setTimeout(() => socket.destroy(), 30)),
  );
  const deadline = Date.now() + 5_000;
  while (aborts.length === before && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(aborts.length, before + 1);
});

test('closes what is above the budget of unrecognised connections, and admits the recognised', async () => {
  const admitted = await send('GET', '/v1/things/abc');
  assert.equal(admitted.status, 200);
  const sockets = Array.from({ length: 12 }, () => connect(listening.port, '127.0.0.1'));
  const closed = await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<boolean>((resolve) => {
          socket.on('error', () => {});
          socket.on('close', () => resolve(true));
          setTimeout(() => resolve(false), 300).unref();
        }),
    ),
  );
  for (const socket of sockets) socket.destroy();
  assert.ok(closed.filter(Boolean).length >= 4, `closed ${closed.filter(Boolean).length} of 12`);
  assert.ok(server.budget.refused() >= 4);
  const deadline = Date.now() + 5_000;
  while (server.budget.waiting() > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(server.budget.waiting(), 0);
});

const client = () =>
  createClient({
    baseUrl: listening.url,
    token: () => 'good',
    peer: 'the test server',
    unreachable: 'control_plane_unavailable',
  });

test('a typed call goes there and back', async () => {
  const made = await client().call(makeThing, { params: { id: 'abc' }, query: { dry: 'true' }, body: { name: 'x' } });
  assert.deepEqual(made, { status: 201, body: { id: 'abc', name: 'x', size: 1, tags: [], dry: 'true' } });
  assert.deepEqual(await client().call(dropThing, { params: { id: 'abc' } }), { status: 204, body: null });
});

test('errors come back as their classes', async () => {
  await assert.rejects(client().call(getThing, { params: { id: 'gone' } }), (error: unknown) => {
    assert.ok(error instanceof ConflictError);
    assert.equal(error.code, 'superseded');
    return true;
  });
  await assert.rejects(client().call(getThing, { params: { id: 'busy' } }), (error: unknown) => {
    assert.ok(error instanceof LimitError);
    assert.equal(error.retryAfterMs, 2_000);
    return true;
  });
  await assert.rejects(client().call(getThing, { params: { id: 'bug' } }), UnavailableError);
  const nobody = createClient({ baseUrl: 'http://127.0.0.1:9', peer: 'nobody', unreachable: 'sandbox_unreachable' });
  await assert.rejects(nobody.call(getThing, { params: { id: 'a' } }), (error: unknown) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.code, 'sandbox_unreachable');
    return true;
  });
  await assert.rejects(client().call(getThing, { params: { id: 'hang' } }, { timeoutMs: 50 }), (error: unknown) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.code, 'timed_out');
    return true;
  });
});

test('server-sent events arrive in order with their ids, and an early error is a plain answer', async () => {
  const seen = [];
  for await (const event of await client().sse(follow, { query: { mode: 'few' } })) seen.push(event);
  assert.deepEqual(
    seen,
    [1, 2, 3].map((n) => ({ id: String(n), event: 'tick', data: { n } })),
  );
  await assert.rejects(client().sse(follow, { query: { mode: 'fail' } }), ConflictError);
});

test('NDJSON values arrive in order', async () => {
  const seen = [];
  for await (const value of await client().ndjson(facts, {})) seen.push(value.n);
  assert.deepEqual(seen, [0, 1, 2, 3, 4]);
});

test('a reader that leaves more than 256 KiB unread is dropped', async () => {
  floodEnd = undefined;
  const socket = connect(listening.port, '127.0.0.1', () =>
    socket.write(`GET /v1/follow?mode=flood HTTP/1.1\r\n${head}\r\n`),
  );
  socket.on('error', () => {});
  socket.pause();
  const deadline = Date.now() + 10_000;
  while (floodEnd === undefined && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
  socket.destroy();
  assert.equal(floodEnd, 'slow');
});

test('a silent stream carries heartbeats, and breaks for a reader that waits less than that', async () => {
  const socket = connect(listening.port, '127.0.0.1', () =>
    socket.write(`GET /v1/follow?mode=wait HTTP/1.1\r\n${head}\r\n`),
  );
  let text = '';
  socket.setEncoding('utf8');
  await new Promise<void>((resolve) => {
    socket.on('data', (part: string) => {
      text += part;
      if (text.split(': heartbeat').length > 2) resolve();
    });
  });
  socket.destroy();
  const events = await client().sse(follow, { query: { mode: 'wait' } }, { silenceMs: 5 });
  await assert.rejects(
    async () => {
      for await (const event of events) assert.equal(event.event, 'hello');
    },
    (error: unknown) => error instanceof UnavailableError && /went silent/.test(error.message),
  );
});

test('a raw route streams its body, and its guard comes first', async () => {
  const reply = await send('POST', '/v1/raw/x', {
    headers: { 'content-type': 'application/x-git' },
    body: 'x'.repeat(2_000_000),
  });
  assert.deepEqual([reply.status, reply.text], [200, '2000000']);
  const bad = await send('POST', '/v1/raw/bad', { headers: json, body: '{}' });
  assert.deepEqual([bad.status, errorOf(bad).message], [400, 'not this one']);
  const nobody = await send('POST', '/v1/raw/x', { headers: { authorization: 'Bearer bad' }, body: 'x' });
  assert.equal(nobody.status, 401);
});

test('a stop lets a request end, ends streams, and opens the port again', async () => {
  const other = createHttpServer({ listener: 'public', log, clock: systemClock });
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
  const own = createHttpServer({ listener: 'public', log, clock });
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
