// The whole public API for tests: a real API server, a real Postgres, one control plane process and a person who may do
// everything. Must not know any single test.
import { type Client, createClient } from '#base/http/client.ts';
import type { KubeClient } from '#kube/client.ts';
import { type ControlPlaneProcess, startControlPlane } from './control-plane.ts';
import { applyFile, startTestApi, type TestApi } from './kube.ts';
import { createAccount, grantEverywhere, grantPaths, tokenOf } from './kube-accounts.ts';
import { freshDatabase, type TestDatabase } from './postgres.ts';

const AUDIENCE = 'beeuni-control-plane';

/** What is running. `namespace` is also that of the installation. */
export type ApiWorld = Readonly<{
  api: TestApi;
  client: KubeClient;
  database: TestDatabase;
  process: ControlPlaneProcess;
  namespace: string;
  /** May do everything in every namespace and the workspace. */
  alice: Client;
  aliceToken: string;
  /** The operator, on the internal listener. */
  operator: Client;
  operatorToken: string;
  publicUrl: string;
  /** A person with a token and no permission yet. */
  person: (name: string) => Promise<Readonly<{ client: Client; token: string }>>;
  stop: () => Promise<void>;
}>;

const clientOf = (baseUrl: string, token: string): Client =>
  createClient({ baseUrl, token: () => token, peer: 'the control plane', unreachable: 'control_plane_unavailable' });

/** Starts everything; providers and git remotes on the loopback may be used. */
export const startApiWorld = async (environment: Readonly<Record<string, string>> = {}): Promise<ApiWorld> => {
  const api = await startTestApi();
  const { client } = api.admin;
  await applyFile(client, 'crds/projects.yaml');
  await applyFile(client, 'crds/sessions.yaml');
  const namespace = await api.namespace();
  const database = await freshDatabase();
  await createAccount(client, namespace, 'alice');
  const everything = "[{apiGroups: [beeuni.dev], resources: ['*'], verbs: ['*']}]";
  await grantEverywhere(client, namespace, 'alice', `${namespace}-alice-everywhere`, everything);
  await grantPaths(client, namespace, 'alice', `${namespace}-alice`, ['/v1/workspace/*', '/v1/audit', '/v1/usage']);
  await createAccount(client, namespace, 'operator');
  const started = await startControlPlane({
    kubeconfigPath: api.kubeconfigPath,
    databaseUrl: database.databaseUrl,
    environment: {
      BEEUNI_NAMESPACE: namespace,
      BEEUNI_OPERATOR_SERVICE_ACCOUNT: 'operator',
      BEEUNI_PROVIDER_ALLOWED_PRIVATE_HOSTS: '127.0.0.0/8',
      BEEUNI_GIT_INSECURE_HTTP_HOSTS: '127.0.0.1',
      BEEUNI_RATE_LIMIT_PER_SECOND: '10000',
      BEEUNI_RATE_LIMIT_BURST: '10000',
      ...environment,
    },
  });
  await started.ready();
  const publicUrl = await started.url('public');
  const aliceToken = await tokenOf(client, { namespace, account: 'alice' });
  const operatorToken = await tokenOf(client, { namespace, account: 'operator', audience: AUDIENCE });
  return {
    api,
    client,
    database,
    process: started,
    namespace,
    alice: clientOf(publicUrl, aliceToken),
    aliceToken,
    operator: clientOf(await started.url('internal'), operatorToken),
    operatorToken,
    publicUrl,
    person: async (name) => {
      await createAccount(client, namespace, name);
      const token = await tokenOf(client, { namespace, account: name });
      return { client: clientOf(publicUrl, token), token };
    },
    stop: async () => {
      await started.stop();
      await database.close();
      await api.stop();
    },
  };
};
