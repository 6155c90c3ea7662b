// One session behind REST with everything real: an API server, a control plane process, the daemon and OpenCode with a scripted
// model. Must not know what is tested.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, createClient } from '#base/http/client.ts';
import { apply, applyStatus } from '#kube/apply.ts';
import { PROJECTS, SESSIONS } from '#kube/resource-types.ts';
import { createPromptRoute, getPromptRoute, type PromptView } from '#schema/rest/prompts.ts';
import { type HumanRequestView, listRequestsRoute } from '#schema/rest/requests.ts';
import * as sessions from '#schema/rest/sessions.ts';
import { listMessagesRoute } from '#schema/rest/transcript.ts';
import { putProviderRoute } from '#schema/rest/workspace.ts';
import { syncProjectRoute } from '#schema/wire/sync.ts';
import { type ControlPlaneProcess, startControlPlane } from '#test/support/control-plane.ts';
import {
  type DaemonProcess,
  makeSandboxFolders,
  type SandboxFolders,
  startDaemon,
} from '#test/support/daemon-process.ts';
import { type ForwardedPort, forwardPort } from '#test/support/forward-port.ts';
import { startTestRemote, type TestRemote } from '#test/support/git-server.ts';
import { applyFile, startTestApi, type TestApi } from '#test/support/kube.ts';
import { createAccount, createIdlePod, grant, grantPaths, tokenOf } from '#test/support/kube-accounts.ts';
import { freshDatabase } from '#test/support/postgres.ts';
import { startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const AUDIENCE = 'beeuni-control-plane';
const MANAGER = { manager: 'beeuni-test', force: true };
const KEY = 'sk-canary-rest-verbs-17c2';
/** Addresses of 127.0.0.0/8 are all this machine; the process id keeps two runs apart. */
const POD_IP = `127.77.${(process.pid >> 8) & 255}.${(process.pid & 127) + 1}`;

const AGENT = `---
description: Works in the repository
mode: primary
permission:
  bash:
    '*': allow
    'touch *': ask
---
You are the developer.
`;
const MANIFEST = 'beeuni_version: 2\ndefault_agent: dev\nagents:\n  dev:\n    tools: all\n    skills: all\n';
const COMMAND = '---\ndescription: Greet somebody\n---\n@@say hello $ARGUMENTS\n';

/** See the file. `alice` may do everything, `bob` may only look at the session; processes that were replaced are the newest ones. */
export type SessionRest = Readonly<{
  alice: () => Client;
  bob: () => Client;
  /** Names of the session. */
  at: Readonly<{ namespace: string; name: string }>;
  /** The provider's key, which must be seen nowhere. */
  key: string;
  api: TestApi;
  remote: TestRemote;
  folders: SandboxFolders;
  /** The way from the control plane to the daemon. */
  door: ForwardedPort;
  controlPlane: () => ControlPlaneProcess;
  daemon: () => DaemonProcess;
  startPlane: (environment?: Readonly<Record<string, string>>) => Promise<void>;
  /** Starts a daemon on the sandbox's folders; `ready` waits until the control plane knows that its harness is. */
  startBox: () => Promise<void>;
  ready: () => Promise<unknown>;
  say: (text: string, delivery?: 'queue' | 'steer') => Promise<PromptView>;
  ended: (promptId: string) => Promise<PromptView>;
  /** The first open request of a kind, once there is one. */
  openOne: (kind: 'permission' | 'question') => Promise<HumanRequestView>;
  inWorkspace: (name: string) => boolean;
  /** The conversation, or another thread, as JSON. */
  textOfMessages: (query?: Readonly<{ thread?: string }>) => Promise<string>;
  stop: () => Promise<void>;
}>;

/** Starts all but a daemon. */
export const startSessionRest = async (): Promise<SessionRest> => {
  const [api, database, provider, remote, door] = await Promise.all([
    startTestApi(),
    freshDatabase(),
    startScriptedProvider({ key: KEY, models: ['large'] }),
    startTestRemote(),
    forwardPort(POD_IP, 8_000),
  ]);
  const { client } = api.admin;
  await applyFile(client, 'crds/projects.yaml');
  await applyFile(client, 'crds/sessions.yaml');
  const namespace = await api.namespace();
  const at = { namespace, name: 'work' };
  for (const name of ['alice', 'bob', 'operator', 'sandbox']) await createAccount(client, namespace, name);
  await grant(client, namespace, 'alice', 'alice', "[{apiGroups: [beeuni.dev], resources: ['*'], verbs: ['*']}]");
  await grant(client, namespace, 'bob', 'bob', '[{apiGroups: [beeuni.dev], resources: [sessions], verbs: [get]}]');
  await grantPaths(client, namespace, 'alice', `${namespace}-alice`, ['/v1/workspace/*']);
  const tokens: Record<string, string> = {};
  for (const account of ['alice', 'bob']) tokens[account] = await tokenOf(client, { namespace, account });
  const operatorToken = await tokenOf(client, { namespace, account: 'operator', audience: AUDIENCE });
  await remote.commit('shop.git', {
    'README.md': '# Shop\n',
    'beeuni.yaml': MANIFEST,
    'agents/dev.md': AGENT,
    'harnesses/opencode/commands/greet.md': COMMAND,
  });
  const repository = { url: remote.urlOf('shop.git') };
  const project = await apply(
    client,
    PROJECTS,
    { metadata: { namespace, name: 'shop' }, spec: { repository } },
    MANAGER,
  );

  let controlPlane!: ControlPlaneProcess;
  let daemon: DaemonProcess | undefined;
  let alice!: Client;
  let bob!: Client;
  const clientOf = (baseUrl: string, token: string): Client =>
    createClient({ baseUrl, token: () => token, peer: 'the control plane', unreachable: 'control_plane_unavailable' });
  const connect = async (): Promise<void> => {
    const url = await controlPlane.url('public');
    alice = clientOf(url, tokens['alice'] ?? '');
    bob = clientOf(url, tokens['bob'] ?? '');
  };
  const startPlane = async (more: Readonly<Record<string, string>> = {}): Promise<void> => {
    controlPlane = await startControlPlane({
      kubeconfigPath: api.kubeconfigPath,
      databaseUrl: database.databaseUrl,
      environment: {
        BEEUNI_OPERATOR_NAMESPACE: namespace,
        BEEUNI_OPERATOR_SERVICE_ACCOUNT: 'operator',
        BEEUNI_PROVIDER_ALLOWED_PRIVATE_HOSTS: '127.0.0.0/8',
        BEEUNI_GIT_INSECURE_HTTP_HOSTS: '127.0.0.1',
        BEEUNI_RATE_LIMIT_PER_SECOND: '100000',
        BEEUNI_RATE_LIMIT_BURST: '1000000',
        ...more,
      },
    });
    await controlPlane.ready();
    await connect();
  };

  await startPlane();
  await alice.call(putProviderRoute, {
    params: { id: 'scripted' },
    body: { kind: 'openai-compatible', base_url: provider.url, api_key: KEY, models: [{ id: 'large' }] },
  } as never);
  const operator = clientOf(await controlPlane.url('internal'), operatorToken);
  let fact: unknown;
  const isRead = async (): Promise<boolean> => {
    const { body } = await operator.call(syncProjectRoute, {
      params: { namespace, name: 'shop' },
      body: {
        uid: project.metadata.uid ?? '',
        generation: 1,
        syncToken: null,
        repository: {
          url: repository.url,
          defaultBranch: null,
          credentialsSecretName: null,
          forcePush: 'Forbidden',
          pollIntervalSeconds: 0,
        },
        manifestPath: 'beeuni.yaml',
        features: { llm_gateway: true },
        defaults: { agent: null, model: 'scripted/large' },
        allowedModels: null,
        secrets: [],
      },
    });
    fact = body;
    return body.state === 'done' && body.manifest.lastValid !== null;
  };
  await until('the project is read', isRead, { describe: () => fact });
  const made = await alice.call(sessions.createSessionRoute, {
    params: { namespace },
    body: { name: 'work', spec: { projectRef: { name: 'shop' }, model: 'scripted/large' } },
  });
  const { uid } = made.body;
  const podUid = await createIdlePod(client, namespace, 'work-1', 'sandbox');
  const pod = { name: 'work-1', uid: podUid };
  const folders = makeSandboxFolders(await tokenOf(client, { namespace, account: 'sandbox', audience: AUDIENCE, pod }));
  const status = {
    phase: 'Running',
    harness: { id: 'opencode', reason: 'default' },
    pod: { name: 'work-1', uid: podUid, ip: POD_IP, attempt: 1 },
  };
  await applyStatus(client, SESSIONS, { metadata: { namespace, name: 'work', uid }, status } as never, MANAGER);

  const startBox = async (): Promise<void> => {
    daemon = startDaemon(folders, await controlPlane.url('sandbox'));
    const url = await daemon.url();
    door.setTarget(Number(new URL(url).port));
  };
  const ready = () =>
    until(
      'the control plane knows that the harness is ready',
      async () => {
        const report = await alice.call(sessions.sessionHealthRoute, { params: at }).catch(() => undefined);
        return report?.body.health.runtimeReady === true && !report.body.silent;
      },
      { deadlineMs: 240_000, describe: () => daemon?.output().slice(-2_000) },
    );
  const say = async (text: string, delivery: 'queue' | 'steer' = 'queue') =>
    (await alice.call(createPromptRoute, { params: at, body: { parts: [{ type: 'text', text }], delivery } })).body;
  const ended = (id: string) =>
    until(
      'the prompt ended',
      async () => {
        const { body } = await alice.call(getPromptRoute, { params: { ...at, id } });
        return body.state === 'ended' ? body : undefined;
      },
      { deadlineMs: 240_000, describe: () => daemon?.output().slice(-2_000) },
    );
  const openOne = (kind: 'permission' | 'question') =>
    until(
      'something is asked',
      async () => {
        const { body } = await alice.call(listRequestsRoute, {});
        return body.items.find((item) => item.kind === kind);
      },
      { deadlineMs: 240_000, describe: () => daemon?.output().slice(-2_000) },
    );
  const inWorkspace = (name: string): boolean => existsSync(join(folders.workspace, name));
  const textOfMessages = async (query: Readonly<{ thread?: string }> = {}) =>
    JSON.stringify((await alice.call(listMessagesRoute, { params: at, query: { limit: 200, ...query } })).body.items);

  return {
    alice: () => alice,
    bob: () => bob,
    at,
    key: KEY,
    api,
    remote,
    folders,
    door,
    controlPlane: () => controlPlane,
    daemon: () => {
      if (daemon === undefined) throw new Error('no daemon was started');
      return daemon;
    },
    startPlane,
    startBox,
    ready,
    say,
    ended,
    openOne,
    inWorkspace,
    textOfMessages,
    stop: async () => {
      await daemon?.cleanUp();
      await door.close();
      await controlPlane.stop();
      await remote.close();
      await provider.close();
      await api.stop();
      folders.remove();
    },
  };
};
