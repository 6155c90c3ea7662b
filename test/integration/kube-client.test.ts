// The Kubernetes client against a real API server, through the proxy that does harm where a trap needs it.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { sleep } from '#base/clock.ts';
import { ConflictError, ForbiddenError, InvalidError, NotFoundError, UnavailableError } from '#base/errors.ts';
import { apply, applyStatus, jsonPatch, mergePatch } from '#kube/apply.ts';
import { kubeErrorOf } from '#kube/errors.ts';
import { EventRecorder } from '#kube/events.ts';
import { microTime } from '#kube/micro-time.ts';
import { EVENTS, type KubeObject, LEASES, NAMESPACES, PODS, SECRETS, SERVICE_ACCOUNTS } from '#kube/resource-types.ts';
import { subjectAccessReview, tokenReview } from '#kube/reviews.ts';
import { startFaultProxy } from '#test/support/fault-proxy.ts';
import { applyYaml, openTestClient, startTestApi, type TestApi } from '#test/support/kube.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { until } from '#test/support/until.ts';
import { WIDGET_CRD, WIDGETS } from '#test/support/widget.ts';

const MANAGER = { manager: 'beeuni-test' };
let api: TestApi;

before(async () => {
  api = await startTestApi();
  await applyYaml(api.admin.client, WIDGET_CRD);
});
after(async () => api.stop());

const proxied = async (t: TestContext, options: Parameters<typeof openTestClient>[1] = {}) => {
  const proxy = await startFaultProxy({ kubeconfigPath: api.kubeconfigPath });
  const own = await openTestClient(proxy.kubeconfigPath, options);
  t.after(async () => {
    await own.client.close();
    await proxy.stop();
  });
  return { ...own, proxy };
};

const account = (namespace: string, name: string, more: Record<string, string> = {}): KubeObject => ({
  metadata: { namespace, name, labels: more },
});

const kubeconfigWith = async (t: TestContext, change: (config: KubeconfigFile) => void): Promise<string> => {
  const config = parse(await readFile(api.kubeconfigPath, 'utf8')) as KubeconfigFile;
  change(config);
  const dir = await mkdtemp(join(tmpdir(), 'beeuni-kubeconfig-'));
  t.after(async () => rm(dir, { recursive: true, force: true }));
  const path = join(dir, 'kubeconfig');
  await writeFile(path, JSON.stringify(config));
  return path;
};

type KubeconfigFile = { clusters: [{ cluster: Record<string, unknown> }]; users: [{ user: Record<string, unknown> }] };

/** A token of a service account, as a pod has one. */
const tokenOf = async (namespace: string, name: string, audiences?: readonly string[]): Promise<string> => {
  const answer = (await api.admin.client.request({
    verb: 'create',
    type: SERVICE_ACCOUNTS,
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences } },
    idempotent: false,
    mutates: true,
  })) as { status: { token: string } };
  return answer.status.token;
};

test('C7 many calls share at most 16 connections, later ones open none, and a watch opens one more', async () => {
  const { client, connection } = await openTestClient(api.kubeconfigPath);
  await Promise.all(Array.from({ length: 100 }, () => client.list(NAMESPACES)));
  const opened = connection.openedConnections();
  assert.ok(opened <= 16, `${opened} handshakes`);
  for (let n = 0; n < 20; n += 1) await client.list(NAMESPACES);
  assert.equal(connection.openedConnections(), opened);
  const end = new AbortController();
  const { resourceVersion } = await client.list(NAMESPACES);
  await client.watch(NAMESPACES, { resourceVersion, timeoutSeconds: 60, signal: end.signal });
  assert.equal(connection.openedConnections(), opened + 1);
  end.abort();
  await client.close();
  assert.equal(connection.openConnections(), 0);
});

test('C8 a list comes in pages and holds every object once', async (t) => {
  const { client, proxy } = await proxied(t);
  const namespace = await api.namespace();
  const names = Array.from({ length: 7 }, (_, n) => `a${n}`);
  for (const name of names) await client.create(SERVICE_ACCOUNTS, account(namespace, name), MANAGER);
  const before = proxy.calls.length;
  const { items } = await client.list(SERVICE_ACCOUNTS, { namespace }, { pageSize: 3 });
  assert.deepEqual(
    items.map(({ metadata }) => metadata.name),
    names,
  );
  assert.equal(proxy.calls.length - before, 3);
});

test('C8 a page token that expired starts the list again', async (t) => {
  const { client, proxy } = await proxied(t);
  const namespace = await api.namespace();
  for (const name of ['a', 'b', 'c']) await client.create(SERVICE_ACCOUNTS, account(namespace, name), MANAGER);
  const gone = proxy.add(
    { verb: 'list', resource: 'serviceaccounts', from: 2, count: 1 },
    { kind: 'gone', as: 'status' },
  );
  const { items } = await client.list(SERVICE_ACCOUNTS, { namespace }, { pageSize: 2 });
  assert.equal(gone.hits(), 1);
  assert.deepEqual(
    items.map(({ metadata }) => metadata.name),
    ['a', 'b', 'c'],
  );
});

test('C14 each of the four patch functions is accepted for a custom resource', async (t) => {
  const { client, proxy } = await proxied(t);
  const namespace = await api.namespace();
  const ref = { namespace, name: 'w' };
  await apply(client, WIDGETS, { metadata: ref, spec: { color: 'red' } }, { ...MANAGER, force: true });
  await applyStatus(
    client,
    WIDGETS,
    { metadata: ref, status: { pod: 'p1' } },
    { manager: 'beeuni-test-status', force: true },
  );
  await mergePatch(client, WIDGETS, ref, { spec: { size: 3 } }, MANAGER);
  const last = await jsonPatch(client, WIDGETS, ref, [{ op: 'replace', path: '/spec/color', value: 'blue' }], MANAGER);
  assert.deepEqual(
    [last['spec'], last['status']],
    [{ color: 'blue', size: 3, operatingMode: 'Running', egress: { mode: 'Restricted' } }, { pod: 'p1' }],
  );
  assert.deepEqual(
    proxy.mutations().map(({ verb, subresource }) => [verb, subresource]),
    [
      ['apply', ''],
      ['apply', 'status'],
      ['patch', ''],
      ['patch', ''],
    ],
  );
});

test('C13 a patch and an apply leave the fields of others as they are', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  const ref = { namespace, name: 'w' };
  await client.create(
    WIDGETS,
    { metadata: { ...ref, annotations: { 'someone.example/note': 'keep' } }, spec: { color: 'red' } },
    { manager: 'someone' },
  );
  await mergePatch(client, WIDGETS, ref, { spec: { operatingMode: 'Suspended' } }, MANAGER);
  const stored = await apply(
    client,
    WIDGETS,
    { metadata: { ...ref, finalizers: ['test.beeuni.dev/x'] } },
    { manager: 'other', force: true },
  );
  assert.equal((stored['spec'] as { color: string }).color, 'red');
  assert.equal(stored.metadata.annotations?.['someone.example/note'], 'keep');
  await apply(client, WIDGETS, { metadata: ref }, { manager: 'other', force: true });
});

test('C16 the server refuses a Lease time with three digits and takes one with six', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  const lease = (name: string, renewTime: string): KubeObject => ({
    metadata: { namespace, name },
    spec: { renewTime },
  });
  await assert.rejects(client.create(LEASES, lease('three', new Date().toISOString()), MANAGER), InvalidError);
  await client.create(LEASES, lease('six', microTime(Date.now())), MANAGER);
});

test('C17 a refusal carries code, reason, fields and the server’s own words', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  const bad = { metadata: { namespace, name: 'w' }, spec: { size: 99, egress: { mode: 'Restricted', allow: ['a'] } } };
  await assert.rejects(client.create(WIDGETS, bad, MANAGER), (error: unknown) => {
    assert.ok(error instanceof InvalidError);
    const cause = kubeErrorOf(error);
    assert.equal(cause?.code, 422);
    assert.equal(cause?.reason, 'Invalid');
    assert.deepEqual(cause?.causes.map(({ field }) => field).sort(), ['spec.egress', 'spec.size']);
    assert.match(error.message, /mode Restricted takes no allow list/);
    return true;
  });
  await assert.rejects(mergePatch(client, WIDGETS, { namespace, name: 'none' }, {}, MANAGER), NotFoundError);
  await client.create(WIDGETS, { metadata: { namespace, name: 'w' } }, MANAGER);
  await assert.rejects(client.create(WIDGETS, { metadata: { namespace, name: 'w' } }, MANAGER), (error: unknown) => {
    assert.ok(error instanceof ConflictError);
    return error.code === 'already_exists';
  });
});

test('C17 a read is tried again after 503, a create never, and the count of retries is bounded', async (t) => {
  const { client, proxy } = await proxied(t);
  const namespace = await api.namespace();
  const once = proxy.add({ verb: 'get', resource: 'serviceaccounts', count: 1 }, { kind: 'status', code: 503 });
  assert.equal(await client.get(SERVICE_ACCOUNTS, { namespace, name: 'a' }), undefined);
  assert.equal(once.hits(), 1);
  const create = proxy.add({ verb: 'create', resource: 'serviceaccounts', count: 1 }, { kind: 'status', code: 503 });
  await assert.rejects(client.create(SERVICE_ACCOUNTS, account(namespace, 'a'), MANAGER), UnavailableError);
  assert.equal(proxy.mutations().length, 1);
  assert.equal(create.hits(), 1);
  const always = proxy.add({ verb: 'get', resource: 'secrets' }, { kind: 'status', code: 500 });
  await assert.rejects(client.get(SECRETS, { namespace, name: 'a' }), UnavailableError);
  assert.equal(always.hits(), 4);
});

test('FA8 a 429 with Retry-After is obeyed, on a clock that the test moves', async (t) => {
  const clock = manualClock();
  const { client, proxy } = await proxied(t, { clock });
  const busy = proxy.add(
    { verb: 'list', resource: 'pods', count: 1 },
    { kind: 'status', code: 429, headers: { 'retry-after': '4' } },
  );
  let items: unknown;
  const list = client.list(PODS).then((answer) => {
    items = answer.items;
  });
  await until('the server was busy once', () => busy.hits() === 1);
  await until('the client waits', () => clock.pending() >= 2);
  await clock.advance(3_900);
  assert.equal(proxy.calls.length, 1);
  await clock.advance(200);
  await list;
  assert.deepEqual(items, []);
});

test('C18 after a 401 the credentials are read again once and the call is repeated', async (t) => {
  const namespace = await api.namespace();
  await api.admin.client.create(SERVICE_ACCOUNTS, account(namespace, 'reader'), MANAGER);
  const token = await tokenOf(namespace, 'reader');
  const withToken = (value: string) => (config: KubeconfigFile) => {
    config.users[0].user = { token: value };
  };
  const path = await kubeconfigWith(t, withToken('stale'));
  const { client, metric } = await openTestClient(path);
  t.after(async () => client.close());
  await assert.rejects(
    client.get(PODS, { namespace, name: 'p' }),
    UnavailableError,
    'a token that stays bad is our problem',
  );
  const fresh = parse(await readFile(path, 'utf8')) as KubeconfigFile;
  withToken(token)(fresh);
  await writeFile(path, JSON.stringify(fresh));
  // Known to the server now, though without any right.
  await assert.rejects(client.get(PODS, { namespace, name: 'p' }), ForbiddenError);
  assert.equal(await metric('beeuni_k8s_requests_total{verb="get",kind="Pod",code="401"}'), 3);
  assert.equal(await metric('beeuni_k8s_requests_total{verb="get",kind="Pod",code="403"}'), 1);
});

test('C19 a server whose certificate is of another authority is not spoken to', async (t) => {
  const path = await kubeconfigWith(t, (config) => {
    delete config.clusters[0].cluster['certificate-authority'];
    delete config.clusters[0].cluster['certificate-authority-data'];
  });
  const { client } = await openTestClient(path, { random: () => 0 });
  t.after(async () => client.close());
  await assert.rejects(client.get(PODS, { namespace: 'default', name: 'p' }), UnavailableError);
});

test('C19 a server without TLS is refused before a credential could leave', async (t) => {
  const path = await kubeconfigWith(t, (config) => {
    config.clusters[0].cluster = { server: 'http://127.0.0.1:1' };
  });
  await assert.rejects(openTestClient(path), InvalidError);
});

test('K20 the server’s time is used even when the local clock is an hour off', async (t) => {
  const clock = manualClock(Date.now() + 3_600_000);
  const { client } = await proxied(t, { clock });
  await client.list(NAMESPACES);
  assert.ok(Math.abs(client.serverNowMs() - Date.now()) < 2_000);
  clock.jumpWall(-7_200_000);
  assert.ok(Math.abs(client.serverNowMs() - Date.now()) < 2_000);
});

test('K23 a delete hits the uid it names, or nothing', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  const ref = { namespace, name: 'a' };
  const first = await client.create(SERVICE_ACCOUNTS, account(namespace, 'a'), MANAGER);
  const uid = first.metadata.uid ?? '';
  assert.equal(await client.delete(SERVICE_ACCOUNTS, ref, { uid: '00000000-0000-4000-8000-000000000000' }), 'replaced');
  await assert.rejects(client.delete(SERVICE_ACCOUNTS, ref, { uid, resourceVersion: '1' }), ConflictError);
  assert.ok((await client.get(SERVICE_ACCOUNTS, ref)) !== undefined);
  assert.equal(await client.delete(SERVICE_ACCOUNTS, ref, { uid }), 'accepted');
  assert.equal(await client.delete(SERVICE_ACCOUNTS, ref, { uid }), 'absent');
});

test('K29 while the lease is not surely held nothing is written, and reads and reviews go on', async (t) => {
  const { client, proxy } = await proxied(t);
  const namespace = await api.namespace();
  let held = false;
  const guarded = client.guarded(() => held);
  const ref = { namespace, name: 'a' };
  await assert.rejects(guarded.create(SERVICE_ACCOUNTS, account(namespace, 'a'), MANAGER), UnavailableError);
  await assert.rejects(
    apply(guarded, SERVICE_ACCOUNTS, { metadata: ref }, { ...MANAGER, force: true }),
    UnavailableError,
  );
  await assert.rejects(mergePatch(guarded, SERVICE_ACCOUNTS, ref, {}, MANAGER), UnavailableError);
  await assert.rejects(guarded.delete(SERVICE_ACCOUNTS, ref, { uid: 'x' }), UnavailableError);
  await guarded.list(SERVICE_ACCOUNTS, { namespace });
  await subjectAccessReview(guarded, { username: 'u', groups: [] }, { kind: 'path', path: '/v1', verb: 'get' });
  assert.equal(proxy.mutations().length, 0);
  held = true;
  await guarded.create(SERVICE_ACCOUNTS, account(namespace, 'a'), MANAGER);
  assert.equal(proxy.mutations().length, 1);
});

test('K29 a write that is tried again asks once more whether it may be sent', async (t) => {
  const { client, proxy } = await proxied(t);
  const namespace = await api.namespace();
  let held = true;
  const guarded = client.guarded(() => held);
  proxy.add({ mutates: true }, { kind: 'status', code: 503 });
  const writing = apply(guarded, SERVICE_ACCOUNTS, account(namespace, 'a'), { ...MANAGER, force: true });
  const refused = assert.rejects(writing, { name: 'UnavailableError', code: 'not_ready' });
  await until('the first try was sent', () => proxy.mutations().length === 1);
  held = false;
  await refused;
  assert.equal(proxy.mutations().length, 1);
});

test('FA2 a create whose answer was lost is found by reading, and was made once', async (t) => {
  const { client, proxy } = await proxied(t);
  const namespace = await api.namespace();
  const drop = proxy.add({ verb: 'create', resource: 'serviceaccounts', count: 1 }, { kind: 'commit-then-drop' });
  await assert.rejects(client.create(SERVICE_ACCOUNTS, account(namespace, 'a'), MANAGER), UnavailableError);
  assert.equal(drop.hits(), 1);
  const late = proxy.add({ verb: 'create', resource: 'serviceaccounts', count: 1 }, { kind: 'commit-then-504' });
  await assert.rejects(client.create(SERVICE_ACCOUNTS, account(namespace, 'b'), MANAGER), UnavailableError);
  assert.equal(late.hits(), 1);
  await assert.rejects(client.create(SERVICE_ACCOUNTS, account(namespace, 'b'), MANAGER), ConflictError);
  const { items } = await client.list(SERVICE_ACCOUNTS, { namespace });
  assert.deepEqual(
    items.map(({ metadata }) => metadata.name),
    ['a', 'b'],
  );
});

test('FA9 while the server fails for a minute, each kind is asked at most once a second', async (t) => {
  const clock = manualClock();
  const { client, proxy } = await proxied(t, { clock });
  await client.list(PODS);
  const first = proxy.calls.length;
  proxy.add({}, { kind: 'status', code: 500 });
  let over = false;
  const callers = Array.from({ length: 10 }, async () => {
    while (!over) {
      await client.list(PODS).catch(() => undefined);
      await sleep(clock, 100);
    }
  });
  await until('the failure was noticed', () => proxy.calls.length > first);
  await clock.advance(0);
  const onset = proxy.calls.length;
  assert.ok(onset - first <= 16, `${onset - first} requests before the failure was known`);
  for (let second = 0; second < 60; second += 1) {
    await clock.advance(1_000);
    await until('what was asked is answered', () => proxy.calls.every(({ answered }) => answered));
  }
  const made = proxy.calls.length - onset;
  assert.ok(made >= 10 && made <= 61, `${made} requests in 60 s`);
  over = true;
  for (let n = 0; n < 40; n += 1) await clock.advance(1_000);
  await Promise.all(callers);
});

test('a token review names the pod and its uid for a pod-bound token, and refuses another audience', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  await client.create(SERVICE_ACCOUNTS, account(namespace, 'sandbox'), MANAGER);
  const pod = await client.create(
    PODS,
    {
      metadata: { namespace, name: 'p' },
      spec: { serviceAccountName: 'sandbox', containers: [{ name: 'c', image: 'i' }] },
    },
    MANAGER,
  );
  const answer = (await client.request({
    verb: 'create',
    type: SERVICE_ACCOUNTS,
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/sandbox/token`,
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: ['beeuni-control-plane'],
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: pod.metadata.uid },
      },
    },
    idempotent: false,
    mutates: true,
  })) as { status: { token: string } };
  const { token } = answer.status;
  const known = await tokenReview(client, token, ['beeuni-control-plane']);
  assert.equal(known.kind, 'authenticated');
  assert.deepEqual(
    known.kind === 'authenticated' && [known.identity.username, known.identity.podName, known.identity.podUid],
    [`system:serviceaccount:${namespace}:sandbox`, 'p', pod.metadata.uid],
  );
  assert.equal((await tokenReview(client, token, ['other'])).kind, 'unauthenticated');
  assert.equal((await tokenReview(client, 'nonsense', ['beeuni-control-plane'])).kind, 'unauthenticated');
  assert.equal((await tokenReview(client, '', ['beeuni-control-plane'])).kind, 'unauthenticated');
});

test('C21 access is asked for with the caller’s groups, on resources, subresources and paths', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  await applyYaml(
    client,
    `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: prompter}
rules: [{apiGroups: [beeuni.dev], resources: [sessions/prompts], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: prompter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: prompter}
subjects: [{kind: Group, name: team-two, apiGroup: rbac.authorization.k8s.io}]
`,
    namespace,
  );
  const ask = (groups: readonly string[], subresource: string) =>
    subjectAccessReview(
      client,
      { username: 'jo', groups },
      {
        kind: 'resource',
        group: 'beeuni.dev',
        resource: 'sessions',
        subresource,
        verb: 'create',
        namespace,
        name: 's',
      },
    );
  await until('the role is known', async () => (await ask(['team-one', 'team-two'], 'prompts')).allowed);
  assert.equal((await ask(['team-one'], 'prompts')).allowed, false);
  assert.equal((await ask(['team-two'], 'files')).allowed, false);
  const path = await subjectAccessReview(
    client,
    { username: 'jo', groups: [] },
    { kind: 'path', path: '/v1/workspace', verb: 'get' },
  );
  assert.equal(path.allowed, false);
});

test('repeated notes become one series, and a talkative object is cut off', async () => {
  const { client, log } = api.admin;
  const namespace = await api.namespace();
  const clock = manualClock();
  const recorder = new EventRecorder({ client, clock, log, reporter: 'beeuni-operator', instance: 'op-1' });
  const regarding = { apiVersion: 'v1', kind: 'ServiceAccount', namespace, name: 'a', uid: 'u1' };
  const note = { type: 'Warning', reason: 'Failed', action: 'Start', note: 'no room' } as const;
  for (let n = 0; n < 3; n += 1) {
    recorder.note(regarding, note);
    await recorder.flush();
  }
  const { items } = await client.list(EVENTS, { namespace });
  assert.equal(items.length, 1);
  assert.equal((items[0]?.['series'] as { count: number } | undefined)?.count, 3);
  for (let n = 0; n < 60; n += 1) {
    recorder.note(regarding, { ...note, note: `other ${n}` });
    await recorder.flush();
  }
  assert.equal((await client.list(EVENTS, { namespace })).items.length, 23, '25 writes, 2 of them of the series');
  await clock.advance(300_000);
  recorder.note(regarding, { ...note, note: 'later' });
  await recorder.flush();
  assert.equal((await client.list(EVENTS, { namespace })).items.length, 24);
});

test('an event that cannot be written does not reach the caller', async (t) => {
  const { client, log, logged, proxy, clock } = await proxied(t);
  proxy.add({ resource: 'events' }, { kind: 'status', code: 403 });
  const recorder = new EventRecorder({ client, clock, log, reporter: 'r', instance: 'i' });
  recorder.note(
    { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' },
    { type: 'Normal', reason: 'R', action: 'A', note: 'n' },
  );
  await recorder.flush();
  assert.ok(logged.some((line) => line.includes('an event was not written')));
});
