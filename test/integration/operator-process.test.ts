// The operator as a process: settings, probes, metrics, the lease over SIGTERM and SIGKILL, and the rights that it uses.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { LEASES, SESSIONS } from '#kube/resource-types.ts';
import { LEASE_RULES, OPERATOR_RULES } from '#operator/rbac.ts';
import { skipReason } from '#test/cluster/cluster.ts';
import type { RecordedCall } from '#test/support/fault-proxy.ts';
import { applyFile, startTestApi, type TestApi } from '#test/support/kube.ts';
import { type OperatorBench, startOperatorBench } from '#test/support/operator-bench.ts';
import { until } from '#test/support/until.ts';

const skip = skipReason('apiserver', 'integration');

type Running = Readonly<{ child: ChildProcess; lines: string[]; exited: Promise<number | null>; url: () => string }>;

describe('operator, process', { skip }, () => {
  let api: TestApi;
  let bench: OperatorBench;
  let folder: string;
  const children: ChildProcess[] = [];

  before(async () => {
    api = await startTestApi();
    await applyFile(api.admin.client, 'crds/projects.yaml');
    await applyFile(api.admin.client, 'crds/sessions.yaml');
    bench = await startOperatorBench(api);
    folder = mkdtempSync(join(tmpdir(), 'beeuni-operator-'));
    writeFileSync(join(folder, 'token'), 'operator-token\n');
    const installation = {
      sandbox: { image: 'registry.example.com/sandbox:1' },
      controlPlane: { sandboxUrl: 'http://control-plane:8081', namespace: bench.namespace, podLabels: { a: 'b' } },
    };
    writeFileSync(join(folder, 'installation.json'), JSON.stringify(installation));
  });
  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await bench?.stop();
    await api?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = (changes: Readonly<Record<string, string>> = {}): Running => {
    const child = spawn(process.execPath, ['operator/main.ts'], {
      env: {
        PATH: process.env['PATH'] ?? '',
        KUBECONFIG: bench.proxy.kubeconfigPath,
        BEEUNI_NAMESPACE: bench.namespace,
        BEEUNI_WATCH_NAMESPACES: bench.namespace,
        BEEUNI_CONTROL_PLANE_URL: bench.internal.url,
        BEEUNI_CONTROL_PLANE_TOKEN_FILE: join(folder, 'token'),
        BEEUNI_INSTALLATION_FILE: join(folder, 'installation.json'),
        BEEUNI_LISTEN_HOST: '127.0.0.1',
        BEEUNI_METRICS_PORT: '0',
        ...changes,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (chunk: string) => lines.push(...chunk.split('\n').filter((line) => line !== '')));
    }
    const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    const url = () => {
      const line = lines.find((each) => each.includes('"message":"listening"'));
      return `http://127.0.0.1:${(JSON.parse(line ?? '{}') as { port?: number }).port}`;
    };
    return { child, lines, exited, url };
  };
  const says = (running: Running, what: string) =>
    until(`the process says ${what}`, () => running.lines.some((line) => line.includes(what)), {
      describe: () => running.lines.slice(-20),
    });
  const holder = async (): Promise<string> => {
    const { items } = await api.admin.client.list(LEASES, { namespace: bench.namespace });
    const lease = items.find(({ metadata }) => metadata.name === 'beeuni-operator');
    return (lease?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity ?? '';
  };

  test('a wrong environment ends the process with every problem listed', async () => {
    const running = start({ BEEUNI_CONTROL_PLANE_URL: 'nowhere', BEEUNI_METRICS_PORT: '99999', BEEUNI_TYPO: 'x' });
    assert.equal(await running.exited, 2);
    const text = running.lines.join('\n');
    for (const name of ['BEEUNI_CONTROL_PLANE_URL', 'BEEUNI_METRICS_PORT', 'BEEUNI_TYPO: unknown name']) {
      assert.ok(text.includes(name), text);
    }
  });

  test('K34 K35 probes answer, a Session starts, and SIGTERM hands the lease over to a warm standby', async () => {
    const first = start({ BEEUNI_POD_NAME: 'first' });
    await says(first, '"message":"leading"');
    const second = start({ BEEUNI_POD_NAME: 'second' });
    await says(second, '"message":"started"');
    for (const { url } of [first, second]) {
      assert.equal((await fetch(`${url()}/healthz`)).status, 200);
      await until('it is ready', async () => (await fetch(`${url()}/readyz`)).status === 200);
    }
    await bench.project();
    await bench.createSession('work');
    await bench.untilSession('work', 'is ready', ({ status }) => status?.conditions?.[0]?.status === 'True');
    for (const line of [
      'beeuni_leader 1',
      'beeuni_facts_connected 1',
      'beeuni_sessions{phase="Running",harness="opencode"} 1',
    ]) {
      await until(`${line} is on the page`, async () => {
        return (await (await fetch(`${first.url()}/metrics`)).text()).includes(line);
      });
    }
    assert.match(await holder(), /^first_/);
    first.child.kill('SIGTERM');
    assert.equal(await first.exited, 0);
    await says(second, '"message":"leading"');
    assert.match(await holder(), /^second_/);
    await bench.deleteSession('work');
    await bench.untilGone('work');
    second.child.kill('SIGTERM');
    assert.equal(await second.exited, 0);
    const text = [...first.lines, ...second.lines].join('\n');
    assert.ok(!text.includes('operator-token'), 'a token was logged');
  });

  test('every request that was sent is allowed by the rules that the chart is made from', async () => {
    const rules = [...OPERATOR_RULES, ...LEASE_RULES];
    const verbOf = ({ verb }: RecordedCall): string => (verb === 'apply' ? 'patch' : verb);
    const refused = bench.proxy.calls.filter((call) => {
      const resource = call.subresource === '' ? call.resource : `${call.resource}/${call.subresource}`;
      return !rules.some(
        (rule) =>
          rule.apiGroups.includes(call.group) && rule.resources.includes(resource) && rule.verbs.includes(verbOf(call)),
      );
    });
    assert.deepEqual(
      refused.map(({ verb, resource, url }) => `${verb} ${resource} ${url}`),
      [],
    );
    assert.ok(bench.proxy.calls.length > 20, 'the proxy saw the operator');
    const { items } = await api.admin.client.list(SESSIONS, { namespace: bench.namespace });
    assert.deepEqual(items, []);
  });
});
