// Syncing of projects with its parts in process: two git remotes, a provider, a database; Secrets and what is pushed are played.
// Must not know what is tested.
import { createHash, randomBytes } from 'node:crypto';
import { systemClock } from '#base/clock.ts';
import { BeeuniError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import { parseYaml } from '#base/yaml.ts';
import type { ProjectStore } from '#controlplane/app/project-ports.ts';
import { makeProjectSync, type ProjectSync } from '#controlplane/app/project-sync.ts';
import { makeReadProviderKeys } from '#controlplane/app/provider-keys.ts';
import { makeProvidersApp, type ProvidersApp } from '#controlplane/app/providers.ts';
import { makeRegistryReader } from '#controlplane/app/registry.ts';
import { makeListProviderModels } from '#controlplane/gateway/list-models.ts';
import { makeUpstreams } from '#controlplane/gateway/upstream.ts';
import { parseCredentials } from '#controlplane/git/credentials.ts';
import { makeReadFiles } from '#controlplane/git/objects.ts';
import { makeRepositories } from '#controlplane/git/repositories.ts';
import type { SecretAnswer } from '#controlplane/kubernetes/secrets.ts';
import { makeProjectStore } from '#controlplane/store/projects.ts';
import { makeProviderStore } from '#controlplane/store/provider-store.ts';
import { makeSeal, parseSealKeys } from '#controlplane/store/seal.ts';
import { type ProviderInput, providerInput } from '#schema/settings/providers.ts';
import { startTestRemote, type TestRemote } from '#test/support/git-server.ts';
import { makeMirrorRig } from '#test/support/mirrors.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';

/** The provider's key and a password of a remote, which must be seen nowhere. */
export const CANARY = `sk-canary-${randomBytes(8).toString('hex')}`;

/** The parts. */
export type SyncWorld = Readonly<{
  database: TestDatabase;
  /** A remote for everyone, and one that asks for a password. */
  remote: TestRemote;
  locked: TestRemote;
  provider: ScriptedProvider;
  store: ProjectStore;
  sync: ProjectSync;
  providers: ProvidersApp;
  registry: ReturnType<typeof makeRegistryReader>;
  /** Secrets by name, and names of those that may not be read. */
  secrets: Map<string, Record<string, string>>;
  denied: Set<string>;
  readSecret: (namespace: string, name: string) => Promise<SecretAnswer>;
  /** Projects whose Secrets were pushed. */
  pushed: string[];
  logs: readonly string[];
  /** The provider `demo`, with changes; `put` saves it. */
  demo: (more?: Record<string, unknown>) => ProviderInput;
  put: (more?: Record<string, unknown>) => Promise<unknown>;
  stop: () => Promise<void>;
}>;

/** Starts them. */
export const startSyncWorld = async (): Promise<SyncWorld> => {
  const secrets = new Map<string, Record<string, string>>();
  const denied = new Set<string>();
  const logs: string[] = [];
  const pushed: string[] = [];

  const readSecret = async (_namespace: string, name: string): Promise<SecretAnswer> => {
    if (denied.has(name))
      return { kind: 'access-denied', message: `Secret ${name} may not be read; grant it with: kubectl x` };
    const data = secrets.get(name);
    if (data === undefined) return { kind: 'not-found', message: `Secret ${name} does not exist` };
    const decoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value)]));
    return { kind: 'found', secret: { type: 'Opaque', data: decoded, resourceVersion: '1' } };
  };

  const demo = (more: Record<string, unknown> = {}): ProviderInput =>
    providerInput.parse({
      id: 'demo',
      kind: 'openai-compatible',
      base_url: provider.url,
      api_key: CANARY,
      models: [{ id: 'scripted-large' }, { id: 'scripted-small' }],
      ...more,
    });
  const put = (more: Record<string, unknown> = {}) => {
    const { id: _id, ...rest } = demo(more);
    return providers.put('demo', rest, true);
  };

  const database = await freshDatabase();
  const remote = await startTestRemote();
  const locked = await startTestRemote({ user: { username: 'bot', password: CANARY } });
  const provider = await startScriptedProvider({ key: CANARY });
  const rig = await makeMirrorRig();
  const { git } = rig;
  const log = createLogger({ level: 'debug', write: (line) => logs.push(line) });
  const mirrors = rig.mirrorsWith();
  const upstreams = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 8 });
  const providerStore = makeProviderStore(database.pool);
  const registry = makeRegistryReader({ store: providerStore, clock: systemClock });
  const store = makeProjectStore(database.pool);
  const sync = makeProjectSync({
    store,
    repositories: makeRepositories(mirrors, makeReadFiles(git)),
    readSecret,
    parseGitCredentials: parseCredentials,
    readRegistry: registry.fresh,
    parseYaml,
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
    pushSecrets: async (projectUid) => void pushed.push(projectUid),
    defaultModel: undefined,
    pollIntervalSeconds: 60,
    answerWithinMs: 30_000,
    clock: systemClock,
    random: () => 0.5,
    log,
  });
  const { seal, unseal } = makeSeal(parseSealKeys('11'.repeat(32)), randomBytes);
  const providers = makeProvidersApp({
    store: providerStore,
    seal,
    readKeys: makeReadProviderKeys({ unseal, readSecret, namespace: 'beeuni', clock: systemClock }),
    onSync: () => {},
    resolveHost: async () => [],
    listModels: makeListProviderModels(upstreams),
    findReferences: sync.findReferences,
    onChange: sync.checkModels,
    allowedAddresses: ['127.0.0.0/8'],
    clock: systemClock,
  });

  return {
    database,
    remote,
    locked,
    provider,
    store,
    sync,
    providers,
    registry,
    secrets,
    denied,
    readSecret,
    pushed,
    logs,
    demo,
    put,
    stop: async () => {
      await sync.idle();
      await Promise.all([remote.close(), locked.close(), provider.close(), upstreams.close()]);
      await database.close();
      await rig.remove();
    },
  };
};

/** The code of the error that work ends with, or `ok`. */
export const codeOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'ok',
    (error: unknown) => (error instanceof BeeuniError ? error.code : String(error)),
  );
