// Our gateway as it runs in the control plane, with every feature on: credentials, guard, registry, sealed keys, budgets,
// usage rows, metrics and logs over a real Postgres. Only Kubernetes is left out: one project, one session.
// `DATABASE_URL=… UPSTREAM=… UPSTREAM_KEY=… MODELS=… FOLDER=… node subject.ts`; prints one JSON line with its port and
// credential.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '#base/clock.ts';
import { listen } from '#base/http/listen.ts';
import { createHttpServer } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import { createMetrics } from '#base/metrics.ts';
import { makeReadProviderKeys, sealProviderKey } from '#controlplane/app/provider-keys.ts';
import { makeRegistryReader } from '#controlplane/app/registry.ts';
import { makeFindWithdrawn, makeRunningCalls } from '#controlplane/app/running-calls.ts';
import { makeCredentials, newSessionCredential } from '#controlplane/daemons/credentials.ts';
import { makeKeyPools } from '#controlplane/gateway/key-pool.ts';
import { makeUpstreams } from '#controlplane/gateway/upstream.ts';
import { makeAuthenticate } from '#controlplane/http/authenticate.ts';
import { makeAuthorize } from '#controlplane/http/authorize.ts';
import { mountGateway } from '#controlplane/http/gateway.ts';
import { makeGuard } from '#controlplane/http/guard.ts';
import { createPool, POOL_DEFAULTS } from '#controlplane/store/pool.ts';
import { makeProviderStore } from '#controlplane/store/provider-store.ts';
import { makeSeal, parseSealKeys } from '#controlplane/store/seal.ts';
import { findCredential, findRevokedHolders } from '#controlplane/store/sessions.ts';
import { firstRow } from '#controlplane/store/statement.ts';
import { wireGateway, wireMetering } from '#controlplane/wiring/gateway.ts';
import { METRICS } from '#schema/metrics.ts';
import { ProjectKind } from '#schema/resources/project.ts';
import { SessionKind } from '#schema/resources/session.ts';
import { DEFAULT_PLATFORM_FLAGS } from '#schema/rules/effective-flags.ts';
import { providerInput } from '#schema/settings/providers.ts';

const need = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
};

const clock = systemClock;
const log = createLogger({ level: 'info', write: () => undefined });
const { instruments } = createMetrics(METRICS);
const database = createPool({
  ...POOL_DEFAULTS,
  databaseUrl: need('DATABASE_URL'),
  size: 4,
  applicationName: 'bench-gateway',
  onIdleError: () => undefined,
});
const { seal, unseal } = makeSeal(parseSealKeys(randomBytes(32).toString('hex')), randomBytes);

const identity = { sessionUid: 'bench-session', podUid: 'pod', namespace: 'bench', projectUid: 'bench-project' };
const { text: credential, stored } = newSessionCredential(randomBytes);
await database.query({
  text: `insert into sessions (uid, namespace, name, project_uid, generation, pod_uid)
    values ($1, $2, 's', $3, 1, 'pod') on conflict (uid) do nothing`,
  values: [identity.sessionUid, identity.namespace, identity.projectUid],
});
await database.query({
  text: 'insert into credentials (prefix, hash, session_uid, generation, pod_uid) values ($1, $2, $3, 1, $4)',
  values: [stored.prefix, stored.hash, identity.sessionUid, identity.podUid],
});

const store = makeProviderStore(database);
const models = need('MODELS')
  .split(',')
  .map((id) => ({ id, price_input_micro_usd: 150_000, price_output_micro_usd: 600_000 }));
const {
  id,
  api_key: key = '',
  credential: _none,
  ...definition
} = providerInput.parse({
  id: 'demo',
  kind: 'openai-compatible',
  base_url: need('UPSTREAM'),
  api_key: need('UPSTREAM_KEY'),
  models,
});
const at = new Date().toISOString();
await store.remove(id, undefined);
const sealed = sealProviderKey(seal, id)(key);
await store.create(id, { definition, keys: [{ id: 'default', sealed, lastFour: null, addedAt: at }] }, at);

const meta = (name: string, uid: string) => ({
  metadata: { name, namespace: identity.namespace, uid, generation: 1, resourceVersion: '1', creationTimestamp: at },
});
const project = ProjectKind.object.parse({
  apiVersion: 'beeuni.dev/v1alpha1',
  kind: 'Project',
  ...meta('p', identity.projectUid),
  spec: {
    repository: { url: 'https://git.example.com/a/b.git' },
    limits: { dailyBudgetMicroUSD: 1e14, monthlyBudgetMicroUSD: 1e15 },
  },
});
const session = SessionKind.object.parse({
  apiVersion: 'beeuni.dev/v1alpha1',
  kind: 'Session',
  ...meta('s', identity.sessionUid),
  spec: { projectRef: { name: 'p' }, limits: { budgetMicroUSD: 1e14 } },
});

const registry = makeRegistryReader({ store, clock });
const upstreams = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 1_024 });
const metering = wireMetering({
  clock,
  log,
  database,
  usageFile: join(need('FOLDER'), 'usage.jsonl'),
});
const readKeys = makeReadProviderKeys({
  unseal,
  readSecret: async () => {
    throw new Error('no provider of this run has a Secret');
  },
  namespace: identity.namespace,
  clock,
});
const { handlers, background } = wireGateway({
  clock,
  log,
  instruments,
  metering,
  flags: DEFAULT_PLATFORM_FLAGS,
  findProject: () => project,
  findSession: () => session,
  readRegistry: registry.cached,
  readKeys,
  keyPools: makeKeyPools(clock),
  running: makeRunningCalls(
    (holders) => database.query(findRevokedHolders(holders)),
    makeFindWithdrawn({ readRegistry: registry.cached, readKeys }),
  ),
  resolveRole: async () => undefined,
  upstreams,
  onBudgetReached: () => undefined,
  maxRequestBytes: 64 * 2 ** 20,
  projectSeries: 0,
  calls: { perSecond: 1_000_000, burst: 1_000_000 },
});
const credentials = makeCredentials({
  findCredential: (prefix) => firstRow(database.query, findCredential(prefix)),
  clock,
});
const guard = makeGuard({
  authenticate: makeAuthenticate({
    identify: async () => undefined,
    findSessionByCredential: credentials.find,
    operator: { namespace: 'beeuni', serviceAccount: 'operator' },
    sandboxServiceAccount: 'beeuni-sandbox',
  }),
  authorize: makeAuthorize({ mayAccess: async () => false }),
  takeCall: () => undefined,
  readState: async () => undefined,
  recordWrite: (_write, _key, run) => run(),
  observe: {
    authenticated: (result) => instruments.authTotal.inc({ result }),
    denied: (reason) => instruments.authzDeniedTotal.inc({ reason }),
  },
});
const server = createHttpServer({
  listener: 'sandbox',
  log,
  clock,
  observe: ({ listener, operation, method, status, durationMs }) => {
    instruments.httpRequestsTotal.inc({ listener, route: operation, method, code: String(status) });
    instruments.httpRequestDurationSeconds.observe({ listener, route: operation, method }, durationMs / 1_000);
  },
});
mountGateway(server, handlers, guard);
await metering.background.start();
await background.start();
const { port } = await listen(server, { port: 0, host: '127.0.0.1' });
console.log(JSON.stringify({ port, credential }));
