// The API server of the test cluster itself: what every other integration test takes for granted.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { type AdminRequest, adminRequests } from '#test/cluster/api-client.ts';
import { type Apiserver, skipReason, startApiserver } from '#test/cluster/cluster.ts';
import { identify, isRunning, waitUntil } from '#test/cluster/process.ts';

const group = 'tests.beeuni.dev';

/** A kind with one integer that may only grow. */
const counters = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `counters.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'counters', singular: 'counter', kind: 'Counter' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: { value: { type: 'integer' } },
                'x-kubernetes-validations': [{ rule: 'self.value >= oldSelf.value', message: 'value may only grow' }],
              },
            },
          },
        },
      },
    ],
  },
};

const adminOf = (server: Apiserver): AdminRequest => adminRequests(server.url, join(server.dir, 'pki'));

describe('apiserver', { skip: skipReason('apiserver', 'integration') }, () => {
  let servers: Apiserver[] = [];

  before(async () => {
    servers = await Promise.all([startApiserver(), startApiserver()]);
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });

  test('two at once answer on addresses and with data of their own', async () => {
    const [one, two] = servers;
    assert.ok(one && two);
    assert.notEqual(one.url, two.url);
    const created = await adminOf(one)('POST', '/api/v1/namespaces', { metadata: { name: 'only-here' } });
    assert.equal(created.status, 201);
    assert.equal((await adminOf(one)('GET', '/api/v1/namespaces/only-here')).status, 200);
    assert.equal((await adminOf(two)('GET', '/api/v1/namespaces/only-here')).status, 404);
  });

  test('a CEL rule of a custom resource is enforced', async () => {
    const [server] = servers;
    assert.ok(server);
    const request = adminOf(server);
    assert.equal(
      (await request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', counters)).status,
      201,
    );
    const path = `/apis/${group}/v1/namespaces/default/counters`;
    await waitUntil(async () => (await request('GET', path)).status === 200, {
      timeoutMs: 20_000,
      describe: () => 'the kind is not served',
    });
    const counter = { apiVersion: `${group}/v1`, kind: 'Counter', metadata: { name: 'a' }, spec: { value: 2 } };
    const created = await request('POST', path, counter);
    assert.equal(created.status, 201, created.body);
    const metadata = (JSON.parse(created.body) as { metadata: object }).metadata;
    const shrunk = await request('PUT', `${path}/a`, { ...counter, metadata, spec: { value: 1 } });
    assert.equal(shrunk.status, 422);
    assert.match(shrunk.body, /value may only grow/);
    assert.equal((await request('PUT', `${path}/a`, { ...counter, metadata, spec: { value: 3 } })).status, 200);
  });

  test('a deleted namespace goes away with what is in it', async () => {
    const [server] = servers;
    assert.ok(server);
    const request = adminOf(server);
    await request('POST', '/api/v1/namespaces', { metadata: { name: 'short-lived' } });
    await request('POST', '/api/v1/namespaces/short-lived/configmaps', { metadata: { name: 'a' } });
    await request('DELETE', '/api/v1/namespaces/short-lived');
    await waitUntil(async () => (await request('GET', '/api/v1/namespaces/short-lived')).status === 404, {
      timeoutMs: 30_000,
      describe: () => 'the namespace is still there',
    });
  });

  test('stop leaves no process and no file', async () => {
    const server = servers.pop();
    assert.ok(server);
    const identities = Object.values(server.pids).map((pid) => identify(pid));
    assert.deepEqual(Object.keys(server.pids).sort(), ['etcd', 'kube-apiserver', 'kube-controller-manager']);
    assert.ok(identities.every((identity) => identity !== undefined));
    await server.stop();
    assert.ok(identities.every((identity) => identity && !isRunning(identity)));
    assert.ok(!existsSync(server.dir));
  });

  test('it dies with a test process that is killed, and the next start removes its files', async () => {
    const script = `import { startApiserver } from '#test/cluster/cluster.ts';
      const server = await startApiserver();
      console.log(JSON.stringify({ pids: server.pids, dir: server.dir }));
      setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', script], {
      cwd: join(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { pids, dir } = await new Promise<{ pids: Record<string, number>; dir: string }>((resolve, reject) => {
      createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
      child.once('close', () => reject(new Error('the child ended before its server was ready')));
    });
    const identities = Object.values(pids).map((pid) => identify(pid));
    assert.equal(identities.filter((identity) => identity !== undefined).length, 3);
    child.kill('SIGKILL');
    await waitUntil(() => identities.every((identity) => !identity || !isRunning(identity)), {
      timeoutMs: 60_000,
      describe: () => 'a component survives its test process',
    });
    // Its files go when the next one starts.
    assert.ok(existsSync(dir));
    await (await startApiserver({ controllers: [] })).stop();
    assert.ok(!existsSync(dir));
  });
});
