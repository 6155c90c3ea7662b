// A server with one route of each kind on a real socket, and ways to call it. Must not know what is tested.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { z } from 'zod';
import { ConflictError, InvalidError, LimitError, UnauthenticatedError } from '#base/errors.ts';
import { type Client, createClient } from '#base/http/client.ts';
import { listen } from '#base/http/listen.ts';
import { answer, type Guard, mount, mountNdjson, mountSse } from '#base/http/mount.ts';
import { mountRaw } from '#base/http/raw-route.ts';
import { createHttpServer, type HttpServer } from '#base/http/server.ts';
import { createLogger, type Logger } from '#base/log.ts';
import { defineRoute } from '#schema/define-route.ts';

const thing = z.object({
  name: z.string().max(8),
  size: z.int().min(1).default(1),
  tags: z.array(z.string()).default([]),
});
const shared = { listener: 'public', auth: { kind: 'pod' }, summary: 's' } as const;
/** A change with params, query and body. */
export const makeThing = defineRoute({
  ...shared,
  operationId: 'makeThing',
  method: 'POST',
  path: '/v1/things/:id',
  params: z.object({ id: z.string().regex(/^[a-z]{1,8}$/) }),
  query: z.object({ dry: z.enum(['true', 'false']).default('false') }),
  body: thing,
  responses: { 201: thing.extend({ id: z.string(), dry: z.string() }) },
});
/** A read; its id says how it behaves: bug, wrong, gone, busy, hang, or well. */
export const getThing = defineRoute({
  ...shared,
  operationId: 'getThing',
  method: 'GET',
  path: '/v1/things/:id',
  params: z.object({ id: z.string() }),
  responses: { 200: z.object({ id: z.string() }) },
});
/** A change without an answer. */
export const dropThing = defineRoute({
  ...shared,
  operationId: 'dropThing',
  method: 'DELETE',
  path: '/v1/things/:id',
  params: z.object({ id: z.string() }),
  responses: { 204: z.null() },
});
/** A route for anyone. */
export const openHealth = defineRoute({
  ...shared,
  auth: { kind: 'anyone' },
  operationId: 'openHealth',
  method: 'GET',
  path: '/v1/open',
  responses: { 200: z.object({ ok: z.boolean() }) },
});
/** Server-sent events: three, as many as are taken, an error before the first, or one and then silence. */
export const follow = defineRoute({
  ...shared,
  operationId: 'follow',
  method: 'GET',
  path: '/v1/follow',
  query: z.object({ mode: z.enum(['few', 'flood', 'fail', 'wait']) }),
  stream: 'sse',
  responses: { 200: z.object({ n: z.int() }) },
});
/** Five NDJSON values. */
export const facts = defineRoute({
  ...shared,
  operationId: 'facts',
  method: 'GET',
  path: '/v1/facts',
  stream: 'ndjson',
  responses: { 200: z.object({ n: z.int() }) },
});
/** A body that is streamed. */
export const raw = defineRoute({
  ...shared,
  operationId: 'raw',
  method: 'POST',
  path: '/v1/raw/:id',
  params: z.object({ id: z.string() }),
  responses: { 200: z.unknown() },
});

/** Who calls. */
export type Caller = Readonly<{ name: string }>;
/** Takes the token `good`; the id `busy` is too much. */
export const guard: Guard<Caller> = {
  authenticate: async ({ route, header }) => {
    if (route.auth.kind === 'anyone') return { name: 'nobody' };
    if (header('authorization') !== 'Bearer good') throw new UnauthenticatedError('send a bearer token');
    return { name: 'ann' };
  },
  authorize: async ({ params }) => {
    if (params['id'] === 'busy') throw new LimitError('rate_limited', 'too many', { retryAfterMs: 1_500 });
  },
};

/** One answer, whole. */
export type Reply = Readonly<{ status: number; headers: IncomingMessage['headers']; text: string }>;
/** Headers and body of a call. */
export type SendOptions = Readonly<{ headers?: Record<string, string | string[]>; body?: string | Buffer }>;

/** Headers of a body in JSON. */
export const JSON_HEADERS = { 'content-type': 'application/json' };
/** Header lines of a caller who is let in, for calls that are written byte by byte. */
export const HEAD = 'host: x\r\nauthorization: Bearer good\r\n';

/** The error of an answer. */
export const errorOf = (reply: Reply) => {
  const body = JSON.parse(reply.text) as {
    error: { code: string; message: string; requestId: string; details?: unknown };
  };
  return body.error;
};

/** The server while it listens. */
export type HttpRig = Readonly<{
  server: HttpServer;
  port: number;
  log: Logger;
  /** Lines of the log. */
  logged: readonly string[];
  /** Calls of `getThing` with the id `hang` whose caller has left. */
  aborts: readonly string[];
  /** How streams of `follow` that are written without end have ended. */
  ended: readonly (string | undefined)[];
  send: (method: string, path: string, options?: SendOptions) => Promise<Reply>;
  /** Sends bytes as they are and gives back all that is answered until the server closes or one answer came. */
  sendBytes: (bytes: string) => Promise<string>;
  client: () => Client;
  stop: () => Promise<void>;
}>;

/** Starts it. */
export const startHttpRig = async (): Promise<HttpRig> => {
  const logged: string[] = [];
  const aborts: string[] = [];
  const ended: (string | undefined)[] = [];
  const log = createLogger({ level: 'info', write: (line) => logged.push(line) });
  const server = createHttpServer({ listener: 'public', log, maxUnauthenticatedConnections: 8 });
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
      ended.push(writer.ended());
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
  const listening = await listen(server, { port: 0, host: '127.0.0.1' });

  const send = (method: string, path: string, options: SendOptions = {}): Promise<Reply> =>
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

  return {
    server,
    port: listening.port,
    log,
    logged,
    aborts,
    ended,
    send,
    sendBytes,
    client: () =>
      createClient({
        baseUrl: listening.url,
        token: () => 'good',
        peer: 'the test server',
        unreachable: 'control_plane_unavailable',
      }),
    stop: () => listening.stop(1_000),
  };
};
