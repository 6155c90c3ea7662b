// A control plane process with an API server and a database, people who call it from the command line, and sandboxes that are
// played through the store. Must not know what is tested.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SandboxClaim } from '#controlplane/app/session-records.ts';
import { apply } from '#kube/apply.ts';
import { PROJECTS, SESSIONS } from '#kube/resource-types.ts';
import type { CallPlace } from './command-line.ts';
import { type ControlPlaneProcess, startControlPlane } from './control-plane.ts';
import { applyFile, startTestApi, type TestApi } from './kube.ts';
import { createAccount, grant, grantPaths, tokenOf } from './kube-accounts.ts';
import { freshDatabase } from './postgres.ts';
import { anEvent, storedSessions } from './stored-sessions.ts';
import { until } from './until.ts';

const MANAGER = { manager: 'beeuni-test', force: true };

/** The sandbox of a session. */
export type PlayedSandbox = Readonly<{
  claim: SandboxClaim;
  /** Waits for the next prompt and begins its turn. */
  take: () => Promise<string>;
  send: (turnId: string | null, type: string, data: Record<string, unknown>) => Promise<void>;
  /** What the agent says, word by word. */
  say: (turnId: string, text: string) => Promise<void>;
  end: (turnId: string, outcome?: string, message?: string | null) => Promise<void>;
  promptOf: (turnId: string) => Promise<string>;
}>;

/** See the file. `ada` may do everything in the namespace, `bob` may only look at sessions; the project is `shop`. */
export type CommandLineWorld = Readonly<{
  api: TestApi;
  control: ControlPlaneProcess;
  namespace: string;
  parts: ReturnType<typeof storedSessions>;
  ada: CallPlace;
  bob: CallPlace;
  /** A folder of the calls' own; also their home. */
  folder: string;
  /** Plays the sandbox of a session that exists. */
  sandbox: (name: string) => Promise<PlayedSandbox>;
  stop: () => Promise<void>;
}>;

/** Starts it. */
export const startCommandLineWorld = async (): Promise<CommandLineWorld> => {
  const folder = mkdtempSync(join(tmpdir(), 'beeuni-cli-'));
  const api = await startTestApi();
  const { client } = api.admin;
  await applyFile(client, 'crds/projects.yaml');
  await applyFile(client, 'crds/sessions.yaml');
  const namespace = await api.namespace();
  await createAccount(client, namespace, 'ada');
  await createAccount(client, namespace, 'bob');
  await grant(client, namespace, 'ada', 'ada', "[{apiGroups: [beeuni.dev], resources: ['*'], verbs: ['*']}]");
  await grant(client, namespace, 'bob', 'bob', '[{apiGroups: [beeuni.dev], resources: [sessions], verbs: [get]}]');
  await grantPaths(client, namespace, 'ada', `${namespace}-ada`, ['/v1/workspace/*']);
  const spec = { repository: { url: 'https://git.example.com/team/shop.git' } };
  await apply(client, PROJECTS, { metadata: { namespace, name: 'shop' }, spec }, MANAGER);
  const database = await freshDatabase();
  const parts = storedSessions(database.pool);
  const control = await startControlPlane({
    kubeconfigPath: api.kubeconfigPath,
    databaseUrl: database.databaseUrl,
    environment: { BEEUNI_OPERATOR_NAMESPACE: namespace, BEEUNI_OPERATOR_SERVICE_ACCOUNT: 'operator' },
  });
  await control.ready();
  const place = async (account: string): Promise<CallPlace> => ({
    homeDir: folder,
    env: {
      BEEUNI_SERVER: await control.url('public'),
      BEEUNI_TOKEN: await tokenOf(client, { namespace, account }),
      BEEUNI_NAMESPACE: namespace,
    },
  });
  const ada = await place('ada');
  const bob = await place('bob');

  const uidOf = async (name: string): Promise<string> =>
    (await api.admin.client.get(SESSIONS, { namespace, name }))?.metadata.uid ?? '';

  const sandbox = async (name: string): Promise<PlayedSandbox> => {
    const uid = await uidOf(name);
    const key = { uid, namespace, name, projectUid: 'project-1' };
    const claim = await parts.claim(uid, `pod-${name}-${Math.random()}`, undefined, key);
    let n = 0;
    const send = async (turnId: string | null, type: string, data: Record<string, unknown>): Promise<void> => {
      n += 1;
      const { sessionUid, generation } = claim;
      await parts.append({ sessionUid, generation, events: [anEvent(n, { id: `ev-${n}`, type, turnId, data })] });
    };
    const take = () => until('a prompt waits', () => parts.take(claim).catch(() => undefined));
    const promptOf = async (turnId: string): Promise<string> => {
      const [row] = await parts.rows<{ id: string }>('select prompt_id as id from turns where id = $1', turnId);
      return row?.id ?? '';
    };
    const say = async (turnId: string, text: string): Promise<void> => {
      await send(turnId, 'message.updated', { message: { id: `m-${turnId}`, role: 'assistant' } });
      const part = { id: `p-${turnId}`, messageId: `m-${turnId}`, type: 'text' };
      await send(turnId, 'message.part.updated', { part: { ...part, text: '' } });
      const delta = { messageId: part.messageId, partId: part.id, field: 'text' };
      for (const word of text.split(/(?<= )/)) await send(turnId, 'message.part.delta', { ...delta, delta: word });
      await send(turnId, 'message.part.updated', { part: { ...part, text } });
    };
    const end = async (turnId: string, outcome = 'Succeeded', message: string | null = null): Promise<void> => {
      const promptId = await promptOf(turnId);
      const code = outcome === 'Succeeded' ? null : 'aborted';
      await send(turnId, 'turn.ended', { promptId, outcome, code, message, summary: null, commit: null });
    };
    return { claim, take, send, say, end, promptOf };
  };

  return {
    api,
    control,
    namespace,
    parts,
    ada,
    bob,
    folder,
    sandbox,
    stop: async () => {
      await control.stop();
      await api.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
