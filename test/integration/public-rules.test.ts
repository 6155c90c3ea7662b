// The rules of every public route over real sockets and a real Postgres: methods, types, sizes, nesting, repeated writes,
// rate limits. Handlers give back a sample of what their route declares, so every present and future route is walked.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { type Listening, listen } from '#base/http/listen.ts';
import { DEFAULT_BODY_LIMIT_BYTES, isMutating } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import { makeRateLimit } from '#controlplane/app/rate-limit.ts';
import { makeRecordWrite } from '#controlplane/app/writes.ts';
import { makeGuard } from '#controlplane/http/guard.ts';
import { buildServers, type ServerPorts } from '#controlplane/server.ts';
import { makeWriteRecords } from '#controlplane/store/write-records.ts';
import type { Route } from '#schema/define-route.ts';
import { PUBLIC_ROUTES } from '#schema/rest/index.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { sampleOf } from '#test/support/sample-json.ts';

const BURST = 5;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const PATHS = [...new Set(PUBLIC_ROUTES.map(({ path }) => path))];
const WRITES = PUBLIC_ROUTES.filter(({ method, stream }) => isMutating(method) && stream === undefined);
const WITH_BODY = PUBLIC_ROUTES.filter(({ body }) => body !== undefined);

let database: TestDatabase;
let listening: Listening;
const calls: string[] = [];

const answerOf = (route: Route) => {
  const status = Math.min(...Object.keys(route.responses).map(Number));
  const schema = route.responses[status];
  return { status, body: status === 204 || schema === undefined ? null : sampleOf(schema, 'output') };
};

before(async () => {
  database = await freshDatabase();
  const handlers: unknown = new Proxy(
    {},
    {
      get: (_target, name) => async () => {
        calls.push(String(name));
        const route = PUBLIC_ROUTES.find(({ operationId }) => operationId === name);
        if (route === undefined) throw new Error(`no public route ${String(name)}`);
        return answerOf(route);
      },
    },
  );
  const limit = makeRateLimit({ clock: systemClock, perSecond: 1, burst: BURST });
  const guard = makeGuard({
    authenticate: async (call) => {
      const username = call.header('authorization')?.replace('Bearer ', '') ?? 'ann';
      return { kind: 'user', username, uid: 'u', groups: [], extra: {} };
    },
    authorize: async () => {},
    takeCall: (subject) => (subject === 'user:hasty' ? limit(subject) : undefined),
    recordWrite: makeRecordWrite({
      records: makeWriteRecords(database.pool),
      onLost: (error) => assert.fail(String(error)),
    }),
    readState: async () => undefined,
    observe: { authenticated: () => {}, denied: () => {} },
  });
  const { public: server } = buildServers({
    log: createLogger({ level: 'error' }),
    clock: systemClock,
    observe: () => {},
    version: '0.0.0',
    guard,
    public: handlers as ServerPorts['public'],
    sandbox: handlers as ServerPorts['sandbox'],
    internal: handlers as ServerPorts['internal'],
    gateway: handlers as ServerPorts['gateway'],
    mountGit: () => {},
  } as ServerPorts);
  listening = await listen(server, { port: 0, host: '127.0.0.1' });
});
after(async () => {
  await listening?.stop(1_000);
  await database?.close();
});

const OTHER_PATH = '/v1/workspace/providers/another';
const SAMPLES: Readonly<Record<string, string>> = { namespace: 'team', seq: '1' };
const pathOf = (path: string, name = 'thing'): string =>
  path.replace(/:([a-z]+)/gi, (_match, param: string) => SAMPLES[param] ?? name);

/** The path with the fields of the query that a route needs. */
const urlOf = (route: Route, name?: string): string => {
  const query = route.query === undefined ? {} : (sampleOf(route.query, 'input') as Record<string, string>);
  const text = new URLSearchParams(query).toString();
  return `${pathOf(route.path, name)}${text === '' ? '' : `?${text}`}`;
};

type Reply = Readonly<{ status: number; headers: Headers; body: unknown; code: string | undefined }>;
const send = async (
  method: string,
  path: string,
  body?: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> => {
  const response = await fetch(`${listening.url}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  const parsed: unknown = text === '' ? null : JSON.parse(text);
  const code = (parsed as { error?: { code?: string } } | null)?.error?.code;
  return { status: response.status, headers: response.headers, body: parsed, code };
};

test('every path answers a method that it does not take with 405 and the methods that it takes', async () => {
  for (const path of PATHS) {
    const taken = PUBLIC_ROUTES.filter((route) => route.path === path).map(({ method }) => method);
    for (const method of METHODS.filter((one) => !taken.includes(one))) {
      const reply = await send(method, pathOf(path));
      // A path with a parameter in place of a word may be taken by a neighbour.
      if (reply.code === undefined) continue;
      assert.deepEqual([reply.status, reply.code], [405, 'method_not_allowed'], `${method} ${path}`);
      const allow = reply.headers.get('allow')?.split(', ') ?? [];
      assert.ok(
        taken.every((one) => allow.includes(one)),
        `${path}: ${allow.join()}`,
      );
    }
  }
  assert.equal((await send('GET', '/v1/nothing')).status, 404);
  assert.equal((await send('HEAD', '/v1/audit')).status, 405);
});

test('every route with a body refuses other and padded content types, too much, and too deep nesting', async () => {
  for (const route of WITH_BODY) {
    const path = urlOf(route);
    const what = route.operationId;
    for (const type of [
      'text/plain',
      'application/json; charset=latin1',
      'application/json ; x',
      'application/jsonx',
    ]) {
      const reply = await send(route.method, path, '{}', { 'content-type': type });
      assert.deepEqual([reply.status, reply.code], [415, 'unsupported_media_type'], `${what} as ${type}`);
    }
    const limit = route.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES;
    const large = await send(route.method, path, `"${'x'.repeat(limit)}"`);
    assert.deepEqual([large.status, large.code], [413, 'body_too_large'], what);
    const deep = await send(route.method, path, `{"a":${'['.repeat(64)}${']'.repeat(64)}}`);
    assert.deepEqual([deep.status, deep.code], [400, 'invalid_json'], what);
  }
});

test('every write repeats its answer for a repeated key, runs once, and refuses the key for another call', async () => {
  for (const route of WRITES) {
    const body = route.body === undefined ? undefined : JSON.stringify(sampleOf(route.body, 'input'));
    const key = { 'idempotency-key': randomUUID() };
    calls.length = 0;
    const first = await send(route.method, urlOf(route), body, key);
    assert.equal(first.status, answerOf(route).status, `${route.operationId}: ${JSON.stringify(first.body)}`);
    const again = await send(route.method, urlOf(route), body, key);
    assert.deepEqual([again.status, again.body], [first.status, first.body], route.operationId);
    assert.deepEqual(calls, [route.operationId]);
    // A path without a name is the same for every object: its key is tried on another route.
    const other = urlOf(route, 'other');
    const reused =
      other === urlOf(route)
        ? await send('DELETE', OTHER_PATH, undefined, key)
        : await send(route.method, other, body, key);
    assert.deepEqual([reused.status, reused.code], [422, 'idempotency_key_reused'], route.operationId);
  }
});

test('a key for the same body and another query is another call', async () => {
  const key = { 'idempotency-key': randomUUID() };
  const path = '/v1/workspace/providers/acme/discover';
  assert.equal((await send('POST', path, '{}', key)).status, 200);
  assert.equal((await send('POST', `${path}?apply=true`, '{}', key)).code, 'idempotency_key_reused');
});

test('/docs is a page that may load and run nothing, and names every route', async () => {
  const response = await fetch(`${listening.url}/docs`);
  assert.equal((await fetch(`${listening.url}/docs/`)).status, 200);
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(response.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  const html = await response.text();
  for (const { operationId } of PUBLIC_ROUTES) assert.ok(html.includes(`id="${operationId}"`), operationId);
});

test('a subject that calls too often is told how long to wait, and nobody else is', async () => {
  const as = (name: string) => send('GET', '/v1/audit', undefined, { authorization: `Bearer ${name}` });
  const replies = await Promise.all(Array.from({ length: BURST + 3 }, () => as('hasty')));
  const refused = replies.filter(({ status }) => status === 429);
  assert.ok(refused.length >= 1 && refused.length <= 3, `${refused.length} were refused`);
  for (const { code, headers } of refused) {
    assert.equal(code, 'rate_limited');
    assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  }
  assert.equal((await as('calm')).status, 200);
});

test('FF12 every write refuses a page of another origin', async () => {
  for (const route of WRITES) {
    const body = route.body === undefined ? undefined : '{}';
    const reply = await send(route.method, urlOf(route), body, { origin: 'https://evil.example' });
    assert.deepEqual([reply.status, reply.code], [403, 'forbidden'], route.operationId);
  }
});
