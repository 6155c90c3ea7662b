// Starts a node cluster from nothing: files, namespaces, link, then the components in the order that they need each other.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { adminRequests } from './api-client.ts';
import { kubeBinaryKey, type Log } from './binary.ts';
import { etcdArgs } from './component-flags.ts';
import { addonObjects } from './node-addons.ts';
import * as config from './node-config.ts';
import { unmetCondition } from './node-health.ts';
import { importKubeImage } from './node-images.ts';
import { apiserverUrl, clusterNumbers, controlPlaneLayout, type NodeLayout, nodeLayout } from './node-layout.ts';
import { enter, layoutOf, runningInit, writeState } from './node-state.ts';
import { endProcesses } from './node-stop.ts';
import { makeCertificates, writeKubeconfig } from './pki.ts';
import { findCniBinDir } from './prerequisites.ts';
import { isRunning, logTail, type ProcessIdentity, run, startLogged, waitUntil } from './process.ts';

/** Layout of a cluster that runs and is healthy. Its folder holds nothing but kept images before. When it fails, its processes are ended and its logs stay. */
export async function startFromNothing(name: string, kube: string, log: Log): Promise<NodeLayout> {
  const startedAt = performance.now();
  const step = (what: string): void =>
    log(`cluster ${name}: ${what} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  const state = { number: await freeNumber(), programKey: kubeBinaryKey() };
  const layout = layoutOf(name, state);
  mkdirSync(join(layout.dir, 'log'), { recursive: true });
  writeState(name, state);
  writeConfigFiles(layout);
  try {
    const [init] = await Promise.all([startInit(layout, kube), writeCertificates(layout)]);
    await connect(layout, init);
    await startComponents(layout, kube, init, step);
  } catch (err) {
    await endProcesses(name);
    throw new Error(`cluster ${name} did not start; its logs are in ${join(layout.dir, 'log')}`, { cause: err });
  }
  return layout;
}

async function startComponents(
  layout: NodeLayout,
  kube: string,
  init: ProcessIdentity,
  step: (what: string) => void,
): Promise<void> {
  const start = (component: string, argv: readonly string[]): Promise<void> =>
    startInside(layout, init, component, argv);
  const request = adminRequests(apiserverUrl(layout), join(layout.dir, 'pki'));
  const whileAlive = (describe: () => string, timeoutMs: number, condition: () => Promise<boolean>): Promise<void> =>
    waitUntil(
      () => {
        if (!isRunning(init)) throw new Error(`the first process ended: ${logTail(join(layout.dir, 'log/init.log'))}`);
        return condition();
      },
      { timeoutMs, describe },
    );

  await Promise.all([
    start('containerd', ['containerd', '--config', join(layout.dir, 'conf/containerd.toml'), '--log-level', 'warn']),
    start('etcd', [kube, ...etcdArgs(controlPlaneLayout(layout))]),
    start('kube-apiserver', [kube, ...config.nodeApiserverArgs(layout)]),
  ]);
  const socket = `/proc/${init.pid}/root/run/containerd/containerd.sock`;
  const imageThere = whileAlive(
    () => `containerd does not answer:\n${logTail(join(layout.dir, 'log/containerd.log'))}`,
    30_000,
    async () => existsSync(socket),
  ).then(() => importKubeImage(init, kube, layout.kubeImage));
  const apiReady = whileAlive(
    () => `the API server is not ready:\n${logTail(join(layout.dir, 'log/kube-apiserver.log'))}`,
    90_000,
    async () => (await request('GET', '/readyz')).status === 200,
  );
  await Promise.all([imageThere, apiReady]);
  step('API server ready');

  await Promise.all([
    start('kube-controller-manager', [kube, ...config.nodeControllerManagerArgs(layout)]),
    start('kube-scheduler', [kube, ...config.schedulerArgs(layout)]),
    ...config.nodeComponents(layout).map((args) => start(args[0] ?? '', [kube, ...args])),
  ]);
  for (const { path, object } of addonObjects(layout)) {
    const answer = await request('POST', path, object);
    if (answer.status !== 201) throw new Error(`cannot create ${path}: ${answer.status} ${answer.body}`);
  }
  let unmet: string | undefined = 'nothing was seen';
  await whileAlive(
    () => `${unmet}:\n${logTail(join(layout.dir, 'log/kubelet.log'))}`,
    90_000,
    async () => {
      unmet = await unmetCondition(layout, request);
      return unmet === undefined;
    },
  );
  step('node Ready, names resolved');
}

function writeConfigFiles(layout: NodeLayout): void {
  const files = config.configFiles(layout, findCniBinDir() ?? '');
  for (const [file, content] of Object.entries(files)) {
    const path = join(layout.dir, 'conf', file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
}

async function writeCertificates(layout: NodeLayout): Promise<void> {
  const dir = join(layout.dir, 'pki');
  await makeCertificates(dir, config.authorities, config.certificateRequests(layout));
  const common = { dir, url: apiserverUrl(layout), clusterName: layout.name };
  for (const user of config.kubeconfigUsers)
    writeKubeconfig(join(dir, `${user}.kubeconfig`), { ...common, certificate: user });
  writeKubeconfig(join(layout.dir, 'kubeconfig'), { ...common, certificate: 'admin' });
}

/** Starts the first process and gives its identity once its namespaces are prepared. */
async function startInit(layout: NodeLayout, kube: string): Promise<ProcessIdentity> {
  const logPath = join(layout.dir, 'log/init.log');
  const script = join(import.meta.dirname, 'node-init.sh');
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child'];
  const args = [
    ...namespaces,
    'bash',
    script,
    layout.dir,
    layout.cgroup,
    layout.podCidr,
    String(config.policyQueue),
    kube,
  ];
  const child = startLogged('unshare', args, { logPath, env: componentEnv() });
  let init: ProcessIdentity | undefined;
  try {
    await waitUntil(
      () => {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`the namespaces were not prepared: ${logTail(logPath)}`);
        init = runningInit(layout.name);
        return init !== undefined;
      },
      { timeoutMs: 20_000, everyMs: 20, describe: () => `the namespaces are not prepared: ${logTail(logPath)}` },
    );
  } catch (err) {
    child.kill('SIGKILL');
    throw err;
  }
  if (!init) throw new Error('the first process is unknown');
  return init;
}

/** Links the node's network with ours; pods and services get routes. All of it goes away with the node's network namespace. */
async function connect(layout: NodeLayout, init: ProcessIdentity): Promise<void> {
  const batch = (lines: readonly string[], inside: boolean): Promise<string> => {
    const input = `${lines.join('\n')}\n`;
    return inside
      ? run('nsenter', ['--target', String(init.pid), '--net', '--', 'ip', '-batch', '-'], { input })
      : run('ip', ['-batch', '-'], { input });
  };
  await batch([`link add ${layout.hostLink} type veth peer name eth0 netns ${init.pid}`], false);
  await batch(
    [
      'link set lo up',
      `address add ${layout.nodeAddress}/30 dev eth0`,
      'link set eth0 up',
      `route add default via ${layout.hostAddress}`,
    ],
    true,
  );
  await batch(
    [
      `address add ${layout.hostAddress}/30 dev ${layout.hostLink}`,
      `link set ${layout.hostLink} up`,
      `route add ${layout.podCidr} via ${layout.nodeAddress}`,
      `route add ${layout.serviceCidr} via ${layout.nodeAddress}`,
    ],
    false,
  );
}

/** Starts a long-running program inside the node, as a child of its first process, with a log file. */
async function startInside(
  layout: NodeLayout,
  init: ProcessIdentity,
  component: string,
  argv: readonly string[],
): Promise<void> {
  const logPath = join(layout.dir, 'log', `${component}.log`);
  const shell = ['sh', '-c', 'setsid "$@" >> "$0" 2>&1 < /dev/null &', logPath];
  await run('nsenter', [...enter(init), ...shell, ...argv], { env: componentEnv() });
}

/** Only a search path: nothing of the caller's environment, such as a proxy or a token, reaches the cluster. */
function componentEnv(): NodeJS.ProcessEnv {
  return { PATH: `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${process.env['PATH'] ?? ''}` };
}

/** Smallest number whose addresses and link nobody uses. */
async function freeNumber(): Promise<number> {
  const routes = await run('ip', ['-4', '-oneline', 'route', 'show', 'table', 'all']);
  for (let number = clusterNumbers.least; number <= clusterNumbers.most; number++) {
    const { hostLink, hostAddress, podCidr, serviceCidr } = nodeLayout({
      name: 'any',
      number,
      dir: '',
      programKey: '',
    });
    const networks = [hostAddress, podCidr, serviceCidr].map((address) => address.split('.').slice(0, 3).join('.'));
    const routed = networks.some((network) => routes.split(/\s+/).some((word) => word.startsWith(`${network}.`)));
    if (!routed && !existsSync(`/sys/class/net/${hostLink}`)) return number;
  }
  throw new Error(`all ${clusterNumbers.most} address ranges of test clusters are in use`);
}
