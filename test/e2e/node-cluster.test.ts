// The physics of the one-node cluster: names, enforced policies, volumes, limits, and that it leaves the machine as it was.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { importImage, type NodeCluster, nodeStatus, skipReason, startNode, stopNode } from '#test/cluster/cluster.ts';
import { run, runToEnd, waitUntil } from '#test/cluster/process.ts';
import { ensureImages } from '#tools/images.ts';

const name = 'beeuni-physics';
const namespace = 'physics';
const log = (line: string): void => console.error(line);

/** What a cluster of this name could leave on the machine. */
async function traces(): Promise<Record<string, unknown>> {
  const ours = (text: string): string[] =>
    text.split('\n').filter((line) => line.includes(name) || /beeuni-\d+|10\.7[789]\./.test(line));
  const controlGroups = readdirSync('/sys/fs/cgroup').filter((hierarchy) =>
    existsSync(`/sys/fs/cgroup/${hierarchy}/beeuni-${name}`),
  );
  return {
    mounts: ours(readFileSync('/proc/self/mountinfo', 'utf8')),
    links: ours(await run('ip', ['-oneline', 'link'])),
    routes: ours(await run('ip', ['route', 'show', 'table', 'all'])),
    namedNetworks: existsSync('/run/netns') ? readdirSync('/run/netns') : [],
    firewall: await run('iptables-save', []),
    fixedFolders: ['/var/lib/kubelet', '/var/lib/cni', '/run/containerd/containerd.sock'].filter((path) =>
      existsSync(path),
    ),
    controlGroups,
    processes: ours((await run('ps', ['-eo', 'args'])).replaceAll(/^.*\bps -eo.*$/gm, '')).filter((line) =>
      line.includes(`run/${name}/`),
    ),
  };
}

describe('node cluster', { skip: skipReason('node', 'e2e') }, () => {
  let cluster: NodeCluster;
  let image = '';
  let atFirst: Record<string, unknown> = {};

  const kubectl = (args: readonly string[], input?: string): ReturnType<typeof runToEnd> =>
    runToEnd(
      cluster.kubeProgram,
      ['kubectl', '--kubeconfig', cluster.kubeconfigPath, '--namespace', namespace, ...args],
      { input },
    );
  const apply = async (...objects: readonly unknown[]): Promise<void> => {
    const applied = await kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
    );
    assert.equal(applied.code, 0, applied.stderr);
  };
  const inPod = (pod: string, script: string): ReturnType<typeof runToEnd> =>
    kubectl(['exec', pod, '--', 'sh', '-c', script]);
  const untilReady = async (...pods: readonly string[]): Promise<void> => {
    const waited = await kubectl([
      'wait',
      '--for=condition=Ready',
      '--timeout=60s',
      ...pods.map((pod) => `pod/${pod}`),
    ]);
    assert.equal(waited.code, 0, waited.stderr + (await kubectl(['describe', 'pods'])).stdout);
  };
  const reaches = async (pod: string, url: string): Promise<boolean> =>
    (await inPod(pod, `curl --silent --fail --max-time 2 ${url} > /dev/null`)).code === 0;
  const pod = (podName: string, spec: object = {}, container: object = {}): unknown => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName, labels: { app: podName } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        runAsGroup: 1000,
        fsGroup: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'main',
          image,
          imagePullPolicy: 'Never',
          command: ['node', '-e', "require('node:http').createServer((_, r) => r.end('ok')).listen(8080)"],
          readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          ...container,
        },
      ],
      ...spec,
    },
  });

  before(async () => {
    await stopNode({ name });
    atFirst = await traces();
    const images = await ensureImages(log);
    image = images.sandbox.image;
    cluster = await startNode({ name, log });
    await importImage(name, images.sandbox.archive);
    const created = await kubectl(['create', 'namespace', namespace]);
    assert.equal(created.code, 0, created.stderr);
    await waitUntil(async () => (await kubectl(['get', 'serviceaccount', 'default'])).code === 0, {
      timeoutMs: 20_000,
      describe: () => 'the namespace has no service account',
    });
    await apply(
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'server' },
        spec: { selector: { app: 'server' }, ports: [{ port: 80, targetPort: 8080 }] },
      },
      pod('server'),
      pod('client'),
    );
    await untilReady('server', 'client');
  });
  after(async () => {
    await stopNode({ name });
  });

  test('a second start finds it running', async () => {
    assert.equal((await nodeStatus(name)).state, 'running');
    assert.deepEqual(await startNode({ name }), cluster);
  });

  test('a pod resolves and reaches a service by name, and a name outside fails at once', async () => {
    assert.ok(await reaches('client', `http://server.${namespace}.svc.cluster.local`));
    const outside = await inPod(
      'client',
      "node -e \"require('node:dns').lookup('example.com', (e) => console.log(e.code))\"",
    );
    assert.match(outside.stdout, /EAI_AGAIN|ENOTFOUND/);
  });

  test('this machine reaches pods, and pods reach a server of this machine', async () => {
    const address = (await kubectl(['get', 'pod', 'server', '--output', 'jsonpath={.status.podIP}'])).stdout;
    assert.equal(await (await fetch(`http://${address}:8080`)).text(), 'ok');
    const { createServer } = await import('node:http');
    const server = createServer((_, response) => response.end('host'));
    await new Promise<void>((resolve) => server.listen(0, cluster.hostAddress, resolve));
    try {
      const bound = server.address();
      assert.ok(bound && typeof bound === 'object');
      assert.ok(await reaches('client', `http://${cluster.hostAddress}:${bound.port}`));
    } finally {
      server.close();
    }
  });

  test('a network policy denies what it does not allow', async () => {
    const policy = (policyName: string, spec: object): unknown => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: policyName },
      spec,
    });
    const dns = {
      to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } }],
      ports: [{ port: 53, protocol: 'UDP' }],
    };
    assert.ok(await reaches('client', 'http://server'));
    await apply(policy('default-deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }));
    await waitUntil(async () => !(await reaches('client', 'http://server')), {
      timeoutMs: 30_000,
      describe: () => 'default-deny is not enforced',
    });
    assert.ok(!(await reaches('server', `--insecure ${cluster.url}/version`)), 'the API server is still reached');

    await apply(
      policy('client-out', {
        podSelector: { matchLabels: { app: 'client' } },
        policyTypes: ['Egress'],
        egress: [dns, { to: [{ podSelector: { matchLabels: { app: 'server' } } }] }],
      }),
      policy('server-in', {
        podSelector: { matchLabels: { app: 'server' } },
        policyTypes: ['Ingress'],
        ingress: [{ from: [{ podSelector: { matchLabels: { app: 'client' } } }] }],
      }),
    );
    await waitUntil(() => reaches('client', 'http://server'), {
      timeoutMs: 30_000,
      describe: () => 'the allowed connection is refused',
    });
    assert.ok(
      !(await reaches(
        'server',
        `http://${(await kubectl(['get', 'pod', 'client', '--output', 'jsonpath={.status.podIP}'])).stdout}:8080`,
      )),
    );

    await kubectl(['delete', 'networkpolicy', '--all']);
    await waitUntil(() => reaches('server', `--insecure ${cluster.url}/version`), {
      timeoutMs: 30_000,
      describe: () => 'deleted policies are still enforced',
    });
  });

  test('a volume claim is provisioned, survives its pod, and is deleted with its data', async () => {
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    const mount = { volumeMounts: [{ name: 'data', mountPath: '/workspace', subPath: 'workspace' }] };
    await apply(
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
      pod('first', { volumes }, mount),
    );
    await untilReady('first');
    assert.equal((await inPod('first', 'echo kept > /workspace/file')).code, 0);
    await kubectl(['delete', 'pod', 'first']);
    await apply(pod('second', { volumes }, mount));
    await untilReady('second');
    assert.equal((await inPod('second', 'cat /workspace/file')).stdout, 'kept\n');
    await kubectl(['delete', 'pod', 'second']);
    await kubectl(['delete', 'persistentvolumeclaim', 'data']);
    await waitUntil(() => readdirSync(`${cluster.dir}/volumes`).length === 0, {
      timeoutMs: 30_000,
      describe: () => 'the volume keeps its data',
    });
  });

  test('a pod has no capability, a filter for system calls, and a memory limit that ends it', async () => {
    const status = (await inPod('client', 'cat /proc/self/status; touch /x')).stdout;
    assert.match(status, /CapEff:\t0{16}/);
    assert.match(status, /NoNewPrivs:\t1/);
    assert.match(status, /Seccomp:\t2/);
    const eater = {
      command: ['node', '-e', 'const kept = []; for (;;) kept.push(Buffer.alloc(1 << 24, 1));'],
      resources: { limits: { memory: '96Mi' } },
    };
    await apply(pod('eater', { restartPolicy: 'Never' }, { ...eater, readinessProbe: null }));
    let reason = '';
    await waitUntil(
      async () => {
        reason = (
          await kubectl([
            'get',
            'pod',
            'eater',
            '--output',
            'jsonpath={.status.containerStatuses[0].state.terminated.reason}',
          ])
        ).stdout;
        return reason !== '';
      },
      { timeoutMs: 60_000, describe: () => 'the pod does not end' },
    );
    assert.equal(reason, 'OOMKilled');
  });

  test('stop leaves nothing on the machine', async () => {
    const running = await traces();
    assert.notDeepEqual(running, atFirst);
    assert.deepEqual(running['firewall'], atFirst['firewall']);
    assert.deepEqual(running['mounts'], atFirst['mounts']);
    assert.ok(await stopNode({ name }));
    assert.deepEqual(await traces(), atFirst);
    assert.ok(!existsSync(cluster.dir));
    assert.equal((await nodeStatus(name)).state, 'stopped');
  });
});
