// A real Kubernetes API on loopback for one test file: etcd, kube-apiserver and three controllers. No node, so no pod ever runs.
// Several at once are fine; needs no root.
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adminRequests } from './api-client.ts';
import { ensureKubeBinary, type Log } from './binary.ts';
import { apiserverArgs, type ControlPlaneLayout, controllerManagerArgs, etcdArgs } from './component-flags.ts';
import { makeCertificates, writeKubeconfig } from './pki.ts';
import { identify, isRunning, kill, logTail, type ProcessIdentity, startLogged, waitUntil } from './process.ts';

/** Options of {@link startApiserver}. */
export interface ApiserverOptions {
  /** Where progress goes; only a build of the program has any. Default: standard error. */
  readonly log?: Log | undefined;
  /** More arguments for kube-apiserver. */
  readonly apiserverArgs?: readonly string[] | undefined;
  /** Controllers to run; none when empty. Default: garbage collection, namespace deletion, type checks of admission policies. */
  readonly controllers?: readonly string[] | undefined;
}

/** A running API server. Nobody else knows its files; `stop` removes them. */
export interface Apiserver {
  /** Administrator's kubeconfig file. */
  readonly kubeconfigPath: string;
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** Folder with `pki/`, logs and data. */
  readonly dir: string;
  /** Process numbers by component name. */
  readonly pids: Readonly<Record<string, number>>;
  /** Ends every process and removes every file; a second call does nothing. */
  stop(): Promise<void>;
}

const dirPrefix = 'beeuni-apiserver-';

/** Names as Kubernetes 1.34 has them. */
const defaultControllers = [
  'garbage-collector-controller',
  'namespace-controller',
  'validatingadmissionpolicy-status-controller',
];

/** A started API server that answers `/readyz` with ok, after 3 to 5 s. Dies with this process. ServiceAccount admission is off: pods need no account. */
export async function startApiserver(options: ApiserverOptions = {}): Promise<Apiserver> {
  const kube = await ensureKubeBinary(options.log ?? ((line) => process.stderr.write(`${line}\n`)));
  // A port that was free a moment ago can be taken by a neighbour before etcd or the API server listens on it.
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(kube, options);
    } catch (err) {
      if (attempt === 3 || !/address already in use/.test(String(err))) throw err;
    }
  }
}

async function startOnce(kube: string, options: ApiserverOptions): Promise<Apiserver> {
  removeAbandoned();
  const dir = mkdtempSync(join(tmpdir(), dirPrefix));
  writeFileSync(join(dir, 'owner.json'), JSON.stringify(identify(process.pid)));
  const children = new Map<string, ChildProcess>();
  const start = (args: readonly string[]): void => {
    const component = args[0] ?? '';
    const child = startLogged(kube, args, { logPath: join(dir, `${component}.log`), endWithParent: true });
    children.set(component, child);
  };
  const stop = async (): Promise<void> => {
    // The writers first, so that nothing complains about a lost etcd on its way out.
    for (const child of [...children.values()].reverse()) {
      const identity =
        child.exitCode === null && child.signalCode === null && child.pid !== undefined
          ? identify(child.pid)
          : undefined;
      if (identity) await kill(identity);
    }
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const [etcdClient, etcdPeer, port] = await freePorts(3);
    const layout: ControlPlaneLayout = {
      pkiDir: join(dir, 'pki'),
      etcdDir: join(dir, 'etcd'),
      etcdClient: `127.0.0.1:${etcdClient}`,
      etcdPeer: `127.0.0.1:${etcdPeer}`,
      apiserver: { bindAddress: '127.0.0.1', advertiseAddress: '127.0.0.1', port: port ?? 0 },
      serviceCidr: '10.0.0.0/24',
    };
    const url = `https://127.0.0.1:${port}`;
    start(etcdArgs(layout));
    await makeCertificates(
      layout.pkiDir,
      ['ca'],
      [
        {
          name: 'apiserver',
          authority: 'ca',
          subject: '/CN=kube-apiserver',
          usage: 'serverAuth',
          altNames: ['IP:127.0.0.1', 'DNS:localhost'],
        },
        { name: 'admin', authority: 'ca', subject: '/O=system:masters/CN=admin', usage: 'clientAuth' },
      ],
    );
    const kubeconfigPath = join(dir, 'kubeconfig');
    writeKubeconfig(kubeconfigPath, { dir: layout.pkiDir, certificate: 'admin', url, clusterName: 'beeuni-apiserver' });
    start([
      ...apiserverArgs(layout),
      '--authorization-mode=RBAC',
      '--disable-admission-plugins=ServiceAccount',
      // Endpoints of loopback are refused, so nothing may try to write those of the API server itself.
      '--endpoint-reconciler-type=none',
      ...(options.apiserverArgs ?? []),
    ]);
    await untilReady(url, layout.pkiDir, dir, children);
    const controllers = options.controllers ?? defaultControllers;
    if (controllers.length > 0) {
      start([...controllerManagerArgs(kubeconfigPath), `--controllers=${controllers.join(',')}`, '--secure-port=0']);
    }
    const pids = Object.fromEntries([...children].map(([component, child]) => [component, child.pid ?? 0]));
    return { kubeconfigPath, url, dir, pids, stop };
  } catch (err) {
    await stop();
    throw err;
  }
}

/** Removes the folders of test processes that were killed: their components died with them, their files did not. */
function removeAbandoned(): void {
  for (const entry of readdirSync(tmpdir()).filter((name) => name.startsWith(dirPrefix))) {
    const dir = join(tmpdir(), entry);
    try {
      const owner = JSON.parse(readFileSync(join(dir, 'owner.json'), 'utf8')) as ProcessIdentity;
      if (!isRunning(owner)) rmSync(dir, { recursive: true, force: true });
    } catch {
      // Without an owner it was made a moment ago, or is not ours.
    }
  }
}

async function untilReady(
  url: string,
  pkiDir: string,
  dir: string,
  children: ReadonlyMap<string, ChildProcess>,
): Promise<void> {
  const request = adminRequests(url, pkiDir);
  let last = 'no answer';
  const ready = async (): Promise<boolean> => {
    for (const [component, child] of children) {
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new Error(
          `${component} ended with ${child.exitCode ?? child.signalCode}:\n${logTail(join(dir, `${component}.log`))}`,
        );
      }
    }
    const answer = await request('GET', '/readyz');
    last = answer.status === 0 ? 'no answer' : `${answer.status} ${answer.body}`;
    return answer.status === 200;
  };
  await waitUntil(ready, {
    timeoutMs: 120_000,
    everyMs: 50,
    describe: () => `the API server is not ready, last answer: ${last}\n${logTail(join(dir, 'kube-apiserver.log'))}`,
  });
}

/** Ports of loopback that nobody listens on. All are held open together, so they differ. */
async function freePorts(count: number): Promise<number[]> {
  const holders = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    holders.map(
      (holder) =>
        new Promise<number>((resolve, reject) => {
          holder.on('error', reject);
          holder.listen(0, '127.0.0.1', () => {
            const address = holder.address();
            resolve(typeof address === 'object' && address ? address.port : 0);
          });
        }),
    ),
  );
  await Promise.all(holders.map((holder) => new Promise((resolve) => holder.close(resolve))));
  return ports;
}
