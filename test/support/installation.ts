// A whole installation for end-to-end tests: the one-node cluster, both images, the chart, a git server, the scripted model,
// and a person with rights. Built from the same pieces as `make up`. One cluster serves every e2e file, one after the other.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { importImage, runInNode, startNode, stopNode } from '#test/cluster/cluster.ts';
import { ensureImages } from '#tools/images.ts';
import { ensureKubectlHelm } from '#tools/kubectl-helm.ts';
import { installChart } from '#tools/up/install.ts';
import { type Kubectl, makeKubectl } from '#tools/up/kubectl.ts';
import { runProgram, waitFor } from '#tools/up/run-program.ts';
import { demoServices, demoUser, NAMES, sampleProject } from '#tools/up/sample-objects.ts';
import { type Api, makeApi } from '#tools/up/watch-session.ts';

/** Name of the cluster of the e2e tier; never the one of `make up`. */
export const E2E_CLUSTER = 'beeuni-e2e';

/** How long a wait may take: it only keeps a test from hanging, other tests run beside it. Units: milliseconds. */
export const HANG_LIMIT_MS = 360_000;

/** Everything that an e2e test talks to. */
export type Installation = Readonly<{
  kubectl: Kubectl;
  api: Api;
  helm: (...args: string[]) => Promise<string>;
  /** URL of a repository as the cluster sees it; content is what `push` put there. */
  repositoryUrl: (name: string) => string;
  /** Makes or replaces a repository: path to text, one commit on `main`. Gives the commit. */
  push: (name: string, files: Readonly<Record<string, string>>) => Promise<string>;
  /** Runs git against a repository of the cluster: `url` is the loopback address. */
  git: (name: string, run: (url: string) => Promise<string>) => Promise<string>;
  inNode: (...argv: string[]) => Promise<string>;
  stop: () => Promise<void>;
}>;

/** The scripted model as `provider/model`. */
export const MODEL = 'scripted/demo-large';

/** Starts everything (idempotent) and registers the scripted provider. */
export const startInstallation = async (log: (line: string) => void): Promise<Installation> => {
  const node = await startNode({ name: E2E_CLUSTER, log });
  const built = await ensureImages(log);
  await importImage(E2E_CLUSTER, built.control.archive);
  await importImage(E2E_CLUSTER, built.sandbox.archive);
  const programs = await ensureKubectlHelm();
  const kubectl = makeKubectl(programs.kubectl, node.kubeconfigPath);
  await kubectl.apply(demoServices(built.control.image, true));
  await installChart(
    kubectl,
    programs.helm,
    node.kubeconfigPath,
    { control: built.control.image, sandbox: built.sandbox.image },
    log,
  );
  await kubectl.apply(demoUser());
  for (const name of ['git', 'model'])
    await kubectl.run('rollout', 'status', `deployment/${name}`, '-n', NAMES.servicesNamespace, '--timeout=300s');

  // The node's services are routed from this machine, so no forward stands between the test and a restarted pod.
  const clusterIp = async (name: string, namespace: string): Promise<string> =>
    (await kubectl.run('get', 'service', name, '-n', namespace, '-o', 'jsonpath={.spec.clusterIP}')).trim();
  const gitUrl = `http://${await clusterIp('git', NAMES.servicesNamespace)}:${NAMES.gitPort}`;
  const apiUrl = `http://${await clusterIp(NAMES.controlPlaneService, NAMES.systemNamespace)}:8080`;
  const token = (await kubectl.run('create', 'token', NAMES.user, '-n', NAMES.namespace, '--duration', '2h')).trim();
  const api = makeApi(apiUrl, async () => token);
  await api.send('PUT', '/v1/workspace/providers/scripted', {
    kind: 'openai-compatible',
    base_url: `http://${NAMES.modelHost}:${NAMES.modelPort}/v1`,
    api_key: PROVIDER_KEY,
    models: [{ id: 'demo-large' }],
  });
  const folders: string[] = [];
  return {
    kubectl,
    api,
    helm: (...args) => runProgram(programs.helm, args, { env: { KUBECONFIG: node.kubeconfigPath } }),
    repositoryUrl: (name) => `http://${NAMES.gitHost}:${NAMES.gitPort}/${name}.git`,
    push: async (name, files) => {
      const folder = mkdtempSync(join(tmpdir(), 'beeuni-e2e-'));
      folders.push(folder);
      const git = (...args: string[]): Promise<string> =>
        runProgram('git', ['-C', folder, '-c', 'user.name=Test', '-c', 'user.email=test@example.com', ...args]);
      await git('init', '-q', '-b', 'main');
      for (const [path, text] of Object.entries(files)) {
        await runProgram('mkdir', ['-p', join(folder, dirname(path))]);
        writeFileSync(join(folder, path), text);
      }
      await git('add', '-A');
      await git('commit', '-q', '--allow-empty', '-m', 'Start');
      await git('push', '-q', '--force', `${gitUrl}/${name}.git`, 'HEAD:refs/heads/main');
      return (await git('rev-parse', 'HEAD')).trim();
    },
    git: (name, run) => run(`${gitUrl}/${name}.git`),
    inNode: async (...argv) => {
      const finished = await runInNode(E2E_CLUSTER, argv);
      return finished.stdout;
    },
    stop: async () => {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
      await stopNode({ name: E2E_CLUSTER, keepImages: true });
    },
  };
};

/** The provider key of the e2e tier: a canary that must be found nowhere outside the sealed registry. */
export const PROVIDER_KEY = 'canary-provider-key-5f1d7c90b2';

/** A manifest with one agent that may do everything. */
export const MANIFEST = `beeuni_version: 2
default_agent: dev
agents:
  dev:
    tools: all
`;

/** Its agent file. */
export const AGENT_FILE = `---
description: Does the work
mode: primary
---
You are a developer. Do what you are asked and commit it.
`;

/** One condition of an object. */
export type Condition = Readonly<{ type: string; status: string; reason: string; message: string }>;
/** The parts of Project and Session that tests read. */
export type Resource = Readonly<{
  metadata: { name: string; uid: string; deletionTimestamp?: string; finalizers?: string[] };
  spec: Record<string, unknown>;
  status?: {
    phase?: string;
    conditions?: Condition[];
    harness?: { id: string; reason: string };
    pod?: { name: string; uid: string; attempt: number };
    generation?: number;
    workspace?: { claimName?: string; branch?: string; commit?: string };
    lastTurn?: { id: string; outcome: string };
    failure?: { category: string; message: string };
    manifest?: { errors?: { path: string; line: number; column: number; message: string }[] };
  };
}>;

/** The condition of a type, or undefined. */
export const conditionOf = (object: Resource | undefined, type: string): Condition | undefined =>
  object?.status?.conditions?.find((condition) => condition.type === type);

/** Waits until `look` is true for the object; the message of a time-out holds its conditions. */
export const waitForResource = async (
  kubectl: Kubectl,
  kind: 'project' | 'session',
  name: string,
  what: string,
  look: (object: Resource) => boolean,
  timeoutMs = HANG_LIMIT_MS,
): Promise<Resource> => {
  let last: Resource | undefined;
  return waitFor(
    `${kind} ${name}: ${what}`,
    async () => {
      last = await kubectl.get<Resource>(`${kind}.beeuni.dev`, name, NAMES.namespace);
      return last !== undefined && look(last) ? last : undefined;
    },
    { timeoutMs, everyMs: 300, describe: () => JSON.stringify(last?.status ?? null) },
  );
};

/** Applies a Project for a repository of the cluster and waits until it is Ready. */
export const readyProject = async (installation: Installation, name: string): Promise<Resource> => {
  await installation.kubectl.apply([sampleProject(name, installation.repositoryUrl(name), MODEL, undefined)]);
  return waitForResource(
    installation.kubectl,
    'project',
    name,
    'Ready',
    (project) => conditionOf(project, 'Ready')?.status === 'True',
  );
};

/** One stored event of a session. */
export type LogEvent = Readonly<{ seq: number; type: string; turnId: string | null; data: Record<string, unknown> }>;

/** Every event of a session so far, hidden ones included. */
export const readEvents = async (api: Api, session: string): Promise<readonly LogEvent[]> => {
  const response = await api.open(
    `/v1/namespaces/${NAMES.namespace}/sessions/${session}/events?follow=false&hidden=true`,
    AbortSignal.timeout(20_000),
  );
  const events: LogEvent[] = [];
  for (const frame of (await response.text()).split('\n\n')) {
    const event = /^event: ?(.*)$/m.exec(frame)?.[1];
    const data = /^data: ?(.*)$/m.exec(frame)?.[1];
    if (data !== undefined && event !== 'hello' && event !== 'reset') events.push(JSON.parse(data) as LogEvent);
  }
  return events;
};

/** Waits for an event of the log that `look` accepts. */
export const waitForEvent = (
  api: Api,
  session: string,
  what: string,
  look: (event: LogEvent) => boolean,
  timeoutMs = HANG_LIMIT_MS,
): Promise<LogEvent> => {
  let seen: readonly LogEvent[] = [];
  return waitFor(
    `event of ${session}: ${what}`,
    async () => {
      seen = await readEvents(api, session);
      return seen.find(look);
    },
    {
      timeoutMs,
      everyMs: 400,
      describe: () =>
        seen
          .slice(-12)
          .map(({ seq, type }) => `${seq} ${type}`)
          .join(', '),
    },
  );
};
