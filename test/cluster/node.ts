// A whole one-node Kubernetes cluster in namespaces of its own: start, stop, look, run a program inside, import an image.
// Needs root. What a cluster writes is in one folder of the cache; the machine's firewall, mounts and routes stay as they are.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { adminRequests } from './api-client.ts';
import { ensureKubeBinary, kubeBinaryPath, type Log } from './binary.ts';
import type { ImageIdentity } from './image-archive.ts';
import { withLock } from './lock.ts';
import { unmetCondition } from './node-health.ts';
import { importArchive } from './node-images.ts';
import { apiserverUrl, type NodeLayout } from './node-layout.ts';
import { startFromNothing } from './node-start.ts';
import { checkedName, defaultName, enter, layoutOf, lockPath, readState, runDir, runningInit } from './node-state.ts';
import { clean } from './node-stop.ts';
import { missingPrerequisites } from './prerequisites.ts';
import { type Finished, type ProcessIdentity, runToEnd } from './process.ts';

/** What a user of a running cluster needs. Addresses are IPv4. */
export interface NodeCluster {
  readonly name: string;
  /** Administrator's kubeconfig file; the same path at every start. */
  readonly kubeconfigPath: string;
  readonly url: string;
  readonly nodeName: string;
  /** Where pods reach servers of this machine that listen on it or on all addresses. */
  readonly hostAddress: string;
  /** Where this machine reaches node ports. Pod and service addresses are reached directly. */
  readonly nodeAddress: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  readonly dir: string;
  /** The `kube` program: `kube kubectl …` always fits the cluster. */
  readonly kubeProgram: string;
}

/** Whether a cluster is usable. `unhealthy` has a reason: it died, or does not answer as it should. */
export type NodeStatus =
  | { readonly state: 'stopped' }
  | { readonly state: 'unhealthy'; readonly reason: string }
  | { readonly state: 'running'; readonly cluster: NodeCluster };

function clusterOf(layout: NodeLayout, kubeProgram: string): NodeCluster {
  const { name, nodeName, hostAddress, nodeAddress, podCidr, serviceCidr, dir } = layout;
  const kubeconfigPath = join(dir, 'kubeconfig');
  return {
    name,
    kubeconfigPath,
    url: apiserverUrl(layout),
    nodeName,
    hostAddress,
    nodeAddress,
    podCidr,
    serviceCidr,
    dir,
    kubeProgram,
  };
}

/** A running, healthy cluster: at once when it runs already, else started from nothing (5 to 12 s, plus the build of the program). A dead one is cleaned first. */
export function startNode(
  options: { readonly name?: string | undefined; readonly log?: Log | undefined } = {},
): Promise<NodeCluster> {
  const name = checkedName(options.name);
  const log = options.log ?? (() => undefined);
  return withLock(
    lockPath(),
    async () => {
      const status = await nodeStatus(name);
      if (status.state === 'running') {
        log(`cluster ${name}: runs already`);
        return status.cluster;
      }
      if (status.state === 'unhealthy') log(`cluster ${name}: ${status.reason}; starting it anew`);
      const missing = missingPrerequisites('node');
      if (missing.length > 0) throw new Error(`no cluster can run here: ${missing.join('; ')}`);
      const kube = await ensureKubeBinary(log);
      await clean(name, true);
      return clusterOf(await startFromNothing(name, kube, log), kube);
    },
    () => log(`cluster ${name}: another process starts or stops a cluster, waiting`),
  );
}

/** Ends a cluster and removes everything that it left: processes, links, control groups, files. With `keepImages` its images stay for a quick next start. True when there was anything. */
export function stopNode(
  options: { readonly name?: string | undefined; readonly keepImages?: boolean | undefined } = {},
): Promise<boolean> {
  const name = checkedName(options.name);
  return withLock(lockPath(), async () => {
    const existed = existsSync(runDir(name));
    await clean(name, options.keepImages ?? false);
    return existed;
  });
}

/** Whether a cluster runs and answers: API server ready, node Ready, names resolved. Takes at most a few seconds. */
export async function nodeStatus(name: string = defaultName): Promise<NodeStatus> {
  const state = readState(name);
  if (!state) return { state: 'stopped' };
  if (!runningInit(name)) return { state: 'unhealthy', reason: 'its processes are gone' };
  const layout = layoutOf(name, state);
  const request = adminRequests(apiserverUrl(layout), join(layout.dir, 'pki'));
  const waiting = await unmetCondition(layout, request);
  if (waiting !== undefined) return { state: 'unhealthy', reason: waiting };
  return { state: 'running', cluster: clusterOf(layout, kubeBinaryPath(state.programKey)) };
}

/** Runs a program inside the node (its mounts, network and processes) to its end. Rejects when the cluster does not run. */
export async function runInNode(name: string, argv: readonly string[], input?: string): Promise<Finished> {
  return await runToEnd('nsenter', [...enter(initOf(name)), ...argv], { input });
}

/** Exit code of a program inside the node that shares our terminal. Rejects when the cluster does not run. */
export async function attachInNode(name: string, argv: readonly string[]): Promise<number> {
  const child = spawn('nsenter', [...enter(initOf(name)), ...argv], { stdio: 'inherit' });
  return await new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve(code ?? 1)));
}

/** Makes the image of a docker archive or OCI layout folder known to the node; does nothing when the node has the same image under the same names. */
export async function importImage(
  name: string,
  archivePath: string,
): Promise<ImageIdentity & { readonly imported: boolean }> {
  return await importArchive(initOf(name), archivePath);
}

function initOf(name: string): ProcessIdentity {
  const init = runningInit(name);
  if (!init)
    throw new Error(`cluster ${name} does not run; start it with: node test/cluster/cluster.ts up --name ${name}`);
  return init;
}
