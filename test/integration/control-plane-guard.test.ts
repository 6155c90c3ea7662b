// Who may call which route of the control plane: every route of the contracts against a real API server's reviews.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { ConflictError } from '#base/errors.ts';
import { type Listening, listen } from '#base/http/listen.ts';
import { mountSse } from '#base/http/mount.ts';
import { createHttpServer, type HttpServer } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import { makeRateLimit } from '#controlplane/app/rate-limit.ts';
import type { StoredAnswer } from '#controlplane/app/writes.ts';
import { gatewayErrorShape } from '#controlplane/gateway/error-shape.ts';
import type { GitProxy } from '#controlplane/git/proxy.ts';
import { makeAuthenticate } from '#controlplane/http/authenticate.ts';
import { makeAuthorize } from '#controlplane/http/authorize.ts';
import { mountGit } from '#controlplane/http/git.ts';
import { makeGuard } from '#controlplane/http/guard.ts';
import type { Guard } from '#controlplane/http/handler.ts';
import { makeIdentities } from '#controlplane/kubernetes/identity.ts';
import { buildMetricsServer, buildServers, type ControlPlaneServers, type ServerPorts } from '#controlplane/server.ts';
import { SANDBOX_SERVICE_ACCOUNT } from '#kube/names.ts';
import { SERVICE_ACCOUNTS } from '#kube/resource-types.ts';
import type { Route } from '#schema/define-route.ts';
import { PUBLIC_ROUTES } from '#schema/rest/index.ts';
import { streamEventsRoute } from '#schema/rest/prompts.ts';
import * as system from '#schema/rest/system.ts';
import * as claim from '#schema/wire/claim.ts';
import * as gateway from '#schema/wire/gateway.ts';
import * as git from '#schema/wire/git.ts';
import * as health from '#schema/wire/health.ts';
import * as sync from '#schema/wire/sync.ts';
import * as turns from '#schema/wire/turns.ts';
import { type FaultProxy, startFaultProxy } from '#test/support/fault-proxy.ts';
import { openTestClient, startTestApi, type TestApi, type TestClient } from '#test/support/kube.ts';
import {
  createAccount,
  createIdlePod,
  grant,
  grantEverywhere,
  grantPaths,
  ROLE_BINDINGS,
  tokenOf,
} from '#test/support/kube-accounts.ts';
import { type ManualClock, manualClock } from '#test/support/manual-clock.ts';
import { until } from '#test/support/until.ts';

const AUDIENCE = 'beeuni-control-plane';
const isRoute = (value: unknown): value is Route =>
  typeof value === 'object' && value !== null && 'operationId' in value && 'listener' in value;
const ROUTES: readonly Route[] = [
  ...PUBLIC_ROUTES,
  ...[claim, gateway, git, health, sync, turns].flatMap((file) => Object.values(file).filter(isRoute)),
].filter((route) => route.listener !== 'daemon');

/** A route that is called without authentication has a line here, with its reason. */
const OPEN_ROUTES: readonly Route[] = Object.values(system).filter(isRoute);

let api: TestApi;
let proxy: FaultProxy;
let reviewer: TestClient;
let clock: ManualClock;
let guard: Guard;
let servers: ControlPlaneServers & Readonly<{ metrics: HttpServer }>;
const listening: Partial<Record<Route['listener'], Listening>> = {};
let namespace: string;
const tokens: Record<string, string> = {};
const reached: string[] = [];

const REACHED = 'no_active_turn';
/** Handlers that say that they were reached: a status that no guard gives. */
const handlers = new Proxy(
  {},
  {
    get: (_target, name) => async () => {
      reached.push(String(name));
      throw new ConflictError(REACHED, 'the handler was reached');
    },
  },
);

before(async () => {
  api = await startTestApi();
  proxy = await startFaultProxy({ kubeconfigPath: api.kubeconfigPath });
  reviewer = await openTestClient(proxy.kubeconfigPath);
  clock = manualClock();
  const { client } = api.admin;
  namespace = await api.namespace();
  for (const account of ['alice', 'bob', 'operator', SANDBOX_SERVICE_ACCOUNT])
    await createAccount(client, namespace, account);
  const podUid = await createIdlePod(client, namespace, 'pod-1', SANDBOX_SERVICE_ACCOUNT);
  const everything = "[{apiGroups: [beeuni.dev], resources: ['*'], verbs: ['*']}]";
  await grantEverywhere(client, namespace, 'alice', `${namespace}-alice-everywhere`, everything);
  await grantPaths(client, namespace, 'alice', `${namespace}-alice`, ['/v1/workspace/*', '/v1/audit', '/v1/usage']);
  const token = (account: string, audience?: string) => tokenOf(client, { namespace, account, audience });
  tokens['alice'] = await token('alice');
  tokens['alice-ours'] = await token('alice', AUDIENCE);
  tokens['bob'] = await token('bob');
  tokens['bob-ours'] = await token('bob', AUDIENCE);
  tokens['elsewhere'] = await token('alice', 'somebody-else');
  tokens['operator'] = await token('operator', AUDIENCE);
  tokens['operator-api'] = await token('operator');
  tokens['pod'] = await tokenOf(client, {
    namespace,
    account: SANDBOX_SERVICE_ACCOUNT,
    audience: AUDIENCE,
    pod: { name: 'pod-1', uid: podUid },
  });
  tokens['session'] = 'bs_0123456789ab_valid';
  tokens['session-old'] = 'bs_0123456789ab_old';

  const identities = makeIdentities({ client: reviewer.client, clock, audience: AUDIENCE });
  guard = makeGuard({
    authenticate: makeAuthenticate({
      ...identities,
      operator: { namespace, serviceAccount: 'operator' },
      sandboxServiceAccount: SANDBOX_SERVICE_ACCOUNT,
      findSessionByCredential: async (credential) => {
        if (credential === tokens['session-old']) throw new ConflictError('superseded', 'a newer claim exists');
        return credential === tokens['session']
          ? { sessionUid: 's', generation: 1, podUid, namespace, projectUid: 'p' }
          : undefined;
      },
    }),
    authorize: makeAuthorize(identities),
    takeCall: makeRateLimit({ clock: systemClock, perSecond: 1_000, burst: 1_000 }),
    readState: async () => undefined,
    recordWrite: (_write, _key, run): Promise<StoredAnswer> => run(),
    observe: { authenticated: () => {}, denied: () => {} },
  });
  const some = handlers as unknown;
  const basics = { log: createLogger({ level: 'error' }), clock: systemClock, observe: () => {} };
  const built = buildServers({
    ...basics,
    version: '0.0.0',
    guard,
    public: some as ServerPorts['public'],
    sandbox: some as ServerPorts['sandbox'],
    internal: some as ServerPorts['internal'],
    gateway: {
      // A spread of the proxy would copy nothing.
      ...(Object.fromEntries(
        ['chat', 'responses', 'messages', 'embeddings', 'models'].map((name) => [
          name,
          (some as Record<string, unknown>)[name],
        ]),
      ) as ServerPorts['gateway']),
      errorShapes: { openai: gatewayErrorShape('openai'), anthropic: gatewayErrorShape('openai') },
    },
    mountGit: (server, gitGuard) => mountGit(server, some as GitProxy, gitGuard),
  });
  const metricsPage = { contentType: 'text/plain', render: async () => '' };
  servers = {
    ...built,
    metrics: buildMetricsServer(basics, { readiness: () => ({ ready: true, waitingFor: [] }), metricsPage }),
  };
  for (const listener of ['public', 'sandbox', 'internal', 'metrics'] as const) {
    listening[listener] = await listen(servers[listener], { port: 0, host: '127.0.0.1' });
  }
});
after(async () => {
  await Promise.all(Object.values(listening).map((port) => port.stop(1_000)));
  await reviewer?.client.close();
  await proxy?.stop();
  await api?.stop();
});

const SAMPLES: Readonly<Record<string, string>> = { name: 'thing', id: 'thing', uid: 'some-uid', seq: '1' };
const pathOf = (route: Route): string =>
  route.path.replace(/:([a-z]+)/gi, (_match, name: string) =>
    name === 'namespace' ? namespace : (SAMPLES[name] ?? 'x'),
  );

type Reply = Readonly<{ status: number; code: string; message: string }>;
const call = async (route: Route, token: string | undefined): Promise<Reply> => {
  const response = await fetch(`${listening[route.listener]?.url}${pathOf(route)}`, {
    method: route.method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { 'content-type': 'application/json' }),
    },
    ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { body: '{}' }),
  });
  const body = (await response.json()) as { error?: { code: string; message: string } };
  return { status: response.status, code: body.error?.code ?? '', message: body.error?.message ?? '' };
};

/** Credentials that a kind of route refuses, besides none and a wrong one; with the status of the refusal. */
const REFUSED: Readonly<Record<string, readonly (readonly [string, number])[]>> = {
  resource: [
    ['bob', 403],
    ['bob-ours', 403],
    ['pod', 401],
    ['elsewhere', 401],
    ['session', 401],
  ],
  'non-resource': [
    ['bob', 403],
    ['operator', 403],
    ['pod', 401],
    ['elsewhere', 401],
    ['session', 401],
  ],
  user: [
    ['pod', 401],
    ['elsewhere', 401],
    ['session', 401],
  ],
  pod: [
    ['alice-ours', 401],
    ['alice', 401],
    ['operator', 401],
    ['session', 401],
  ],
  sandbox: [
    ['pod', 401],
    ['alice', 401],
    ['operator', 401],
    ['session-old', 409],
  ],
  operator: [
    ['alice-ours', 403],
    ['pod', 403],
    ['operator-api', 401],
    ['session', 401],
  ],
};
const ADMITTED: Readonly<Record<string, string>> = {
  resource: 'alice',
  'non-resource': 'alice',
  user: 'bob',
  pod: 'pod',
  sandbox: 'session',
  operator: 'operator',
};

test('every route of the contracts is mounted, and none without authentication but those that are listed', () => {
  assert.ok(ROUTES.length >= 40, `saw ${ROUTES.length} routes`);
  for (const route of [...ROUTES, ...OPEN_ROUTES]) {
    const server = servers[route.listener as keyof typeof servers];
    assert.ok(server.app.hasRoute({ method: route.method, url: route.path }), `${route.operationId} is not mounted`);
  }
  const open = [...ROUTES, ...OPEN_ROUTES].filter((route) => route.auth.kind === 'anyone');
  assert.deepEqual(open.map((route) => route.operationId).sort(), [
    'getDocs',
    'getHealthz',
    'getMetrics',
    'getOpenApi',
    'getReadyz',
  ]);
});

test('every route refuses no, wrong and insufficient credentials before its handler is reached', async () => {
  for (const route of ROUTES) {
    const none = await call(route, undefined);
    assert.equal(none.status, 401, `${route.operationId} without credentials: ${JSON.stringify(none)}`);
    const wrong = await call(route, 'not-a-token-of-anybody');
    assert.equal(wrong.status, 401, `${route.operationId} with a wrong token: ${JSON.stringify(wrong)}`);
    for (const [who, status] of REFUSED[route.auth.kind] ?? []) {
      const refused = await call(route, tokens[who]);
      assert.equal(refused.status, status, `${route.operationId} as ${who}: ${JSON.stringify(refused)}`);
    }
  }
  assert.deepEqual(reached, []);
});

test('every route admits its own caller', async () => {
  for (const route of ROUTES) {
    const { status, code } = await call(route, tokens[ADMITTED[route.auth.kind] ?? '']);
    // The sample body suits few routes; that it was read at all proves that the guard was passed.
    const passed = code === REACHED || code === 'invalid_request';
    assert.ok(passed, `${route.operationId}: ${status} ${code}`);
  }
});

test('a refusal names who may not do what, and that RBAC decides', async () => {
  const route = ROUTES.find(({ operationId }) => operationId === 'createPrompt');
  assert.ok(route !== undefined);
  const { message } = await call(route, tokens['bob']);
  assert.equal(
    message,
    `system:serviceaccount:${namespace}:bob may not create sessions/prompts.beeuni.dev in namespace ${namespace}; access is given by Kubernetes RBAC`,
  );
});

const getSession = (): Route => {
  const route = ROUTES.find(({ operationId }) => operationId === 'getSession');
  assert.ok(route !== undefined);
  return route;
};

test('a permission that is taken away stops within 5 s, and one review serves many calls', async () => {
  const { client } = api.admin;
  await createAccount(client, namespace, 'carol');
  await grant(client, namespace, 'carol', 'carol', '[{apiGroups: [beeuni.dev], resources: [sessions], verbs: [get]}]');
  const token = await tokenOf(client, { namespace, account: 'carol' });
  await until('carol is admitted', async () => {
    await clock.advance(1_001);
    return (await call(getSession(), token)).code === REACHED;
  });
  await clock.advance(5_001);
  const reviewsBefore = proxy.calls.filter(({ resource }) => /review/.test(resource ?? '')).length;
  const many = await Promise.all(Array.from({ length: 30 }, () => call(getSession(), token)));
  assert.ok(many.every(({ code }) => code === REACHED));
  const reviews = proxy.calls.filter(({ resource }) => /review/.test(resource ?? '')).length - reviewsBefore;
  // The token costs one review, for our audience and for the API server's, which is known by now; the access one more.
  assert.equal(reviews, 2);

  const binding = await client.get(ROLE_BINDINGS, { namespace, name: 'carol' });
  await client.delete(ROLE_BINDINGS, { namespace, name: 'carol' }, { uid: binding?.metadata.uid ?? '' });
  await clock.advance(4_000);
  assert.equal((await call(getSession(), token)).code, REACHED, 'an answer of 4 s ago still counts');
  await clock.advance(1_001);
  await until('the API server knows of it', async () => {
    const { status } = await call(getSession(), token);
    if (status === 403) return true;
    await clock.advance(5_001);
    return false;
  });
});

test('G31 a role binding that is taken away ends the streams of its subject with the reason, and no others', async () => {
  const { client } = api.admin;
  await createAccount(client, namespace, 'erin');
  const events = '[{apiGroups: [beeuni.dev], resources: [sessions/events], verbs: [get]}]';
  await grant(client, namespace, 'erin', 'erin', events);
  const server = createHttpServer({ listener: 'public', log: createLogger({ level: 'error' }), clock });
  mountSse(
    server,
    streamEventsRoute,
    async ({ signal }, writer) => {
      writer.send({ event: 'hello', data: {} });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
    guard,
  );
  const port = await listen(server, { port: 0, host: '127.0.0.1' });
  try {
    const token = await tokenOf(client, { namespace, account: 'erin' });
    const open = (bearer: string | undefined) =>
      fetch(`${port.url}${pathOf(streamEventsRoute)}`, { headers: { authorization: `Bearer ${bearer}` } });
    const erin = await until('erin is admitted', async () => {
      await clock.advance(1_001);
      const answer = await open(token);
      if (answer.status === 200) return answer;
      await answer.body?.cancel();
      return false;
    });
    const alice = await open(tokens['alice']);
    const binding = await client.get(ROLE_BINDINGS, { namespace, name: 'erin' });
    await client.delete(ROLE_BINDINGS, { namespace, name: 'erin' }, { uid: binding?.metadata.uid ?? '' });
    let text: string | undefined;
    void erin.text().then((whole) => {
      text = whole;
    });
    await until('her stream has ended', async () => {
      if (text === undefined) await clock.advance(4_000);
      return text !== undefined;
    });
    assert.match(text ?? '', /event: error\ndata: \{"error":\{"code":"forbidden"/);
    const reader = alice.body?.getReader();
    assert.equal((await reader?.read())?.done, false);
    await clock.advance(4_000);
    const next = await Promise.race([reader?.read(), clock.advance(8_000).then(() => 'still open')]);
    assert.ok(next === 'still open' || (typeof next === 'object' && !next.done));
    await reader?.cancel();
  } finally {
    await port.stop(0);
  }
});

test('a deleted account is refused within 5 s', async () => {
  const { client } = api.admin;
  await createAccount(client, namespace, 'dave');
  await grant(client, namespace, 'dave', 'dave', '[{apiGroups: [beeuni.dev], resources: [sessions], verbs: [get]}]');
  const token = await tokenOf(client, { namespace, account: 'dave' });
  await until('dave is admitted', async () => {
    await clock.advance(1_001);
    return (await call(getSession(), token)).code === REACHED;
  });
  const { SERVICE_ACCOUNTS } = await import('#kube/resource-types.ts');
  const account = await client.get(SERVICE_ACCOUNTS, { namespace, name: 'dave' });
  await client.delete(SERVICE_ACCOUNTS, { namespace, name: 'dave' }, { uid: account?.metadata.uid ?? '' });
  await until('the token is no longer valid', async () => {
    await clock.advance(5_001);
    return (await call(getSession(), token)).status === 401;
  });
});

test('an API server that is down gives 503 and never 401 or 403; fresh answers still count', async () => {
  await clock.advance(5_001);
  assert.equal((await call(getSession(), tokens['alice'])).code, REACHED);
  await proxy.goDown();
  try {
    assert.equal((await call(getSession(), tokens['alice'])).code, REACHED, 'a fresh answer counts');
    const unknown = await call(getSession(), tokens['bob-ours']);
    assert.deepEqual([unknown.status, unknown.code], [503, 'authorizer_unavailable']);
    await clock.advance(5_001);
    const stale = await call(getSession(), tokens['alice']);
    assert.deepEqual([stale.status, stale.code], [503, 'authorizer_unavailable']);
  } finally {
    await proxy.comeBack();
  }
  await until('it is asked again', async () => {
    await clock.advance(1_001);
    return (await call(getSession(), tokens['alice'])).code === REACHED;
  });
});

test('§1 the token of a service account that is deleted ends at the next look, although the API server remembers it', async () => {
  const { client } = api.admin;
  const identities = makeIdentities({ client, clock: systemClock, audience: AUDIENCE });
  for (const audience of [AUDIENCE, undefined]) {
    const account = `leaver-${audience === undefined ? 'api' : 'ours'}`;
    await createAccount(client, namespace, account);
    const token = await tokenOf(client, { namespace, account, audience });
    const ask = () => identities.identify(token, 'ours-or-api-server', 0);
    assert.match((await ask())?.username ?? '', /leaver/);
    const found = await client.get(SERVICE_ACCOUNTS, { namespace, name: account });
    await client.delete(SERVICE_ACCOUNTS, { namespace, name: account }, { uid: found?.metadata.uid ?? '' });
    await until("the token is nobody's", async () => (await ask()) === undefined, { deadlineMs: 4_000 });
  }
});
