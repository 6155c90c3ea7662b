// A real API server for one test file, clients for it, namespaces and objects from YAML. Must not know any single test.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import { type Clock, systemClock } from '#base/clock.ts';
import { createLogger, type Logger } from '#base/log.ts';
import { createMetrics, type Instruments, type MetricsPage } from '#base/metrics.ts';
import { apply } from '#kube/apply.ts';
import { type KubeClient, makeKubeClient } from '#kube/client.ts';
import { type Connection, openConnection } from '#kube/connection.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, type KubeObject, NAMESPACES, type ResourceType } from '#kube/resource-types.ts';
import { METRICS } from '#schema/metrics.ts';
import { startApiserver } from '#test/cluster/cluster.ts';
import { until } from './until.ts';

/** A client with what is behind it. */
export type TestClient = Readonly<{
  client: KubeClient;
  connection: Connection;
  metrics: Instruments<typeof METRICS>;
  page: MetricsPage;
  log: Logger;
  /** Lines that were logged. */
  logged: readonly string[];
  clock: Clock;
  /** The value of a metric line, for example `beeuni_k8s_conflicts_total{kind="Pod"}`; 0 when it is not there. */
  metric: (line: string) => Promise<number>;
}>;

/** The API server of one test file. */
export type TestApi = Readonly<{
  kubeconfigPath: string;
  url: string;
  /** Process numbers by component; empty for a cluster that runs elsewhere. */
  pids: Readonly<Record<string, number>>;
  admin: TestClient;
  /** Name of a fresh namespace; `stop` deletes what is left of a foreign cluster's. */
  namespace: () => Promise<string>;
  stop: () => Promise<void>;
}>;

/** A client for a kubeconfig file. Close it with `client.close()`. */
export const openTestClient = async (
  kubeconfigPath: string,
  options: Readonly<{ clock?: Clock; random?: () => number; userAgent?: string }> = {},
): Promise<TestClient> => {
  const clock = options.clock ?? systemClock;
  const { instruments, page } = createMetrics(METRICS);
  const logged: string[] = [];
  const log = createLogger({ level: 'debug', write: (line) => void logged.push(line) });
  const connection = await openConnection({ kubeconfigPath });
  const client = makeKubeClient({
    connection,
    clock,
    random: options.random ?? Math.random,
    metrics: instruments,
    userAgent: options.userAgent ?? 'beeuni-test/0',
  });
  return {
    client,
    connection,
    metrics: instruments,
    page,
    log,
    logged,
    clock,
    metric: async (line) => {
      const found = (await page.render()).split('\n').find((text) => text.startsWith(`${line} `));
      return found === undefined ? 0 : Number(found.slice(line.length + 1));
    },
  };
};

/**
 * An API server for this test file: the cluster of `BEEUNI_TEST_KUBECONFIG`, else one of its own, ready in seconds.
 * `apiserverArgs` are more arguments for kube-apiserver, for one of its own.
 */
export const startTestApi = async (
  options: Readonly<{ apiserverArgs?: readonly string[]; controllers?: readonly string[] }> = {},
): Promise<TestApi> => {
  const foreign = process.env['BEEUNI_TEST_KUBECONFIG'];
  const own = foreign === undefined || foreign === '' ? await startApiserver(options) : undefined;
  const kubeconfigPath = own?.kubeconfigPath ?? foreign ?? '';
  const admin = await openTestClient(kubeconfigPath);
  const namespaces: string[] = [];
  return {
    kubeconfigPath,
    url: own?.url ?? '',
    pids: own?.pids ?? {},
    admin,
    namespace: async () => {
      const name = `test-${randomBytes(4).toString('hex')}`;
      await admin.client.create(NAMESPACES, { metadata: { name } }, { manager: 'beeuni-test' });
      namespaces.push(name);
      return name;
    },
    stop: async () => {
      if (own === undefined) {
        for (const name of namespaces) {
          const found = await admin.client.get(NAMESPACES, { name });
          if (found?.metadata.uid !== undefined)
            await admin.client.delete(NAMESPACES, { name }, { uid: found.metadata.uid });
        }
      }
      await admin.client.close();
      await own?.stop();
    },
  };
};

/** Where an API server keeps a kind. Rejects for a kind that it does not know. */
export const discover = async (client: KubeClient, apiVersion: string, kind: string): Promise<ResourceType> => {
  const [group, version] = apiVersion.includes('/') ? (apiVersion.split('/') as [string, string]) : ['', apiVersion];
  const unknown: ResourceType = { group, version, plural: '', kind, namespaced: false };
  const answer = (await client.request({
    verb: 'get',
    type: unknown,
    path: group === '' ? `/api/${version}` : `/apis/${group}/${version}`,
    idempotent: true,
    mutates: false,
  })) as { resources: { name: string; kind: string; namespaced: boolean }[] };
  const found = answer.resources.find((resource) => resource.kind === kind && !resource.name.includes('/'));
  if (found === undefined) throw new Error(`the API server knows no ${kind} in ${apiVersion}`);
  return { ...unknown, plural: found.name, namespaced: found.namespaced };
};

/** Applies every document of a YAML text; `namespace` is for those that name none. Gives back what the server stored. */
export const applyYaml = async (client: KubeClient, text: string, namespace?: string): Promise<KubeObject[]> => {
  const results: KubeObject[] = [];
  for (const document of parseAllDocuments(text)) {
    const object = document.toJS() as KubeObject | null;
    if (object === null) continue;
    const type = await discover(client, object.apiVersion ?? '', object.kind ?? '');
    const metadata = type.namespaced ? { namespace, ...object.metadata } : object.metadata;
    results.push(await apply(client, type, { ...object, metadata }, { manager: 'beeuni-test', force: true }));
    if (type.kind === CUSTOM_RESOURCE_DEFINITIONS.kind) await untilServed(client, object);
  }
  return results;
};

/** Applies a YAML file, for example one of `crds/`. */
export const applyFile = async (client: KubeClient, path: string, namespace?: string): Promise<KubeObject[]> =>
  applyYaml(client, await readFile(path, 'utf8'), namespace);

const untilServed = async (client: KubeClient, crd: KubeObject): Promise<void> => {
  const spec = crd['spec'] as { group: string; names: { kind: string }; versions: { name: string }[] };
  const version = spec.versions[0]?.name ?? '';
  const type = await until(`${spec.names.kind} is served`, () =>
    discover(client, `${spec.group}/${version}`, spec.names.kind),
  );
  await until(`${spec.names.kind} can be listed`, async () => (await client.list(type)).resourceVersion !== '');
};
