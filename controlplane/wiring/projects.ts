// Puts together all that serves projects and the workspace: registry, gateway, mirrors, git proxy, sync and claims' settings.
// Must not know HTTP servers or how the sessions' side works.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ForbiddenError } from '#base/errors.ts';
import { parseYaml } from '#base/yaml.ts';
import type { KubeClient } from '#kube/client.ts';
import { defaultBranchName } from '#kube/names.ts';
import { MANIFEST_RUNTIMES } from '#schema/resources/sandbox-fields.ts';
import type { ModelVerdict } from '#schema/rest/workspace.ts';
import { BUDGET_KNOBS } from '#schema/settings/budgets.ts';
import { isModelRole } from '#schema/settings/roles.ts';
import { makeAgentPolicies } from '../app/agent-policies.ts';
import { makeBudgetWatch } from '../app/budget-watch.ts';
import { ENV_PROVIDER, registerEnvironmentModel } from '../app/environment-model.ts';
import { makeModelsApp } from '../app/models.ts';
import type { ClaimConfig } from '../app/ports.ts';
import { makeProjectConfig } from '../app/project-config.ts';
import { readProjectCredentials } from '../app/project-credentials.ts';
import { projectEffective } from '../app/project-effective.ts';
import { makeProjectPoller } from '../app/project-poller.ts';
import { makeProjectSync, type ProjectSync } from '../app/project-sync.ts';
import { makeReadProviderKeys } from '../app/provider-keys.ts';
import type { RegisteredProvider } from '../app/provider-ports.ts';
import { fallbackReferences, sessionReferences } from '../app/provider-references.ts';
import { makeProvidersApp } from '../app/providers.ts';
import { makeRegistryReader } from '../app/registry.ts';
import { resolveRoles } from '../app/role-models.ts';
import { makeCeilingOfRun } from '../app/run-ceiling.ts';
import { makePreparePin, type PreparePin } from '../app/run-settings.ts';
import { makeFindWithdrawn, makeRunAsCall, makeRunningCalls } from '../app/running-calls.ts';
import { makeKeyPools } from '../gateway/key-pool.ts';
import { makeListProviderModels } from '../gateway/list-models.ts';
import { makeUpstreams, systemLookup } from '../gateway/upstream.ts';
import { parseCredentials } from '../git/credentials.ts';
import { makeMirrors } from '../git/mirror.ts';
import { makeReadFiles } from '../git/objects.ts';
import {
  type FindRepository,
  type GitProxy,
  MIRROR_FRESH_MS,
  makeGitProxy,
  type ReadCredentials,
} from '../git/proxy.ts';
import { makeRepositories } from '../git/repositories.ts';
import { makeGit } from '../git/run.ts';
import type { AgentPolicyPorts } from '../http/agent-policies.ts';
import type { GatewayHandlers } from '../http/gateway.ts';
import { type ModelHandlers, makeModelHandlers } from '../http/models.ts';
import { makeProjectSyncHandlers, type ProjectSyncHandlers } from '../http/project-sync.ts';
import { makeProviderHandlers, type ProviderHandlers } from '../http/providers.ts';
import { makeSecrets } from '../kubernetes/secrets.ts';
import { makeAgentPolicyStore } from '../store/agent-policies.ts';
import { makeBudgetMarks } from '../store/budget-marks.ts';
import { forgetBudgets } from '../store/budgets.ts';
import { makeProjectStore } from '../store/projects.ts';
import { makeProviderStore } from '../store/provider-store.ts';
import { findRevokedHolders, listRunningOfProject } from '../store/sessions.ts';
import { firstRow } from '../store/statement.ts';
import { getSessionTurnSettings } from '../store/turns.ts';
import { forgetUsage } from '../store/usage.ts';
import { type Background, type Basics, makeRounds } from './basics.ts';
import { wireGateway, wireMetering } from './gateway.ts';
import { type SettingsSide, wireSettings } from './settings.ts';

/** Calls at once to one provider, per replica. */
const MAX_PROVIDER_CONNECTIONS = 1_024;
const MAX_PUSH_BYTES = 512 * 2 ** 20;
/** How long a sync call waits before it answers `running`; below the operator's own limit. Units: milliseconds. */
const SYNC_ANSWER_MS = 10_000;
const POLL_ROUND_MS = 2_000;
const REGISTRY_ROUND_MS = 5_000;
const BUDGET_ROUND_MS = 5_000;
const BUDGET_FORGET_MS = 3_600_000;
/** How long the spending of past days is kept. */
const BUDGET_DAYS = 400;
/** How long model calls are kept: what can be asked for, and a day of any time zone. */
const USAGE_DAYS = 402;
const USAGE_PER_DELETE = 5_000;
/** How often titles are looked at that nobody poked for: retries, and leases of replicas that died. */
const TITLE_ROUND_MS = 15_000;
const CHECK_ROUND_MS = 900_000;
const MAX_PROJECT_SERIES = 1_000;

/** What the projects' side needs besides. `pushEnv` gives a running daemon its new environment. */
export type ProjectsWiring = Basics &
  Readonly<{
    client: KubeClient;
    pushEnv: (sessionUid: string, revision: number, env: Readonly<Record<string, string>>) => Promise<boolean>;
  }>;

/** The projects' side. `background` is in the order of starting. */
export type ProjectsSide = Readonly<{
  claimConfig: ClaimConfig;
  sync: ProjectSync;
  /** The verdict on a model name. Errors: UnavailableError `registry_unavailable`. */
  judgeModel: (name: string) => Promise<ModelVerdict | undefined>;
  settings: SettingsSide;
  preparePin: PreparePin;
  policies: Omit<AgentPolicyPorts, 'fetchProject'>;
  /** A provider as the audit compares it: its keys by name and age. */
  findProvider: (id: string) => Promise<unknown>;
  handlers: ProviderHandlers & ModelHandlers;
  internal: ProjectSyncHandlers;
  gateway: GatewayHandlers;
  /** Sets the gateway's gauges. */
  refreshGateway: () => void;
  gitProxy: GitProxy;
  background: readonly Background[];
}>;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Puts it together; makes its folders, and nothing else runs before its background parts are started. */
export const wireProjects = async (wiring: ProjectsWiring): Promise<ProjectsSide> => {
  const { config, clock, random, log, database, resources, client, seal, unseal } = wiring;
  const { settings } = config;
  const root = settings.BEEUNI_GIT_MIRROR_DIRECTORY;
  const folders = { mirrors: join(root, 'mirrors'), home: join(root, 'home'), work: join(root, 'work') };
  for (const folder of Object.values(folders)) await mkdir(folder, { recursive: true, mode: 0o700 });
  const newId = (): string => randomUUID();

  const providerStore = makeProviderStore(database);
  const projectStore = makeProjectStore(database);
  const registry = makeRegistryReader({ store: providerStore, clock });
  const upstreams = makeUpstreams({
    allowedAddresses: settings.BEEUNI_PROVIDER_ALLOWED_PRIVATE_HOSTS,
    maxConnections: MAX_PROVIDER_CONNECTIONS,
  });
  const { readSecret } = makeSecrets({
    client,
    account: `${settings.BEEUNI_NAMESPACE}:${settings.BEEUNI_SERVICE_ACCOUNT}`,
  });
  const readKeys = makeReadProviderKeys({ unseal, readSecret, namespace: settings.BEEUNI_NAMESPACE, clock });
  const keyPools = makeKeyPools(clock);
  const defaultModel =
    settings.BEEUNI_DEFAULT_MODEL ?? (config.envModel && `${ENV_PROVIDER}/${config.envModel.id}`) ?? undefined;

  const metering = wireMetering({ ...wiring, usageFile: join(root, 'usage.jsonl') });
  const workspace = wireSettings({
    ...wiring,
    registry,
    readKeys,
    keyPools,
    upstreams,
    metering,
    newId,
    environmentModel: defaultModel,
  });

  const git = makeGit({ home: folders.home, path: settings.PATH, caFile: settings.GIT_SSL_CAINFO }, clock);
  const mirrors = makeMirrors({
    git,
    clock,
    directory: folders.mirrors,
    hostRule: {
      allowedHosts: settings.BEEUNI_GIT_ALLOWED_HOSTS,
      insecureHosts: settings.BEEUNI_GIT_INSECURE_HTTP_HOSTS,
    },
    fetchTimeoutMs: settings.BEEUNI_GIT_FETCH_TIMEOUT_SECONDS * 1_000,
    maxRepositoryBytes: settings.BEEUNI_GIT_MAX_REPOSITORY_BYTES,
  });

  const findRepository: FindRepository = async (projectUid) => {
    const stored = await projectStore.find(projectUid);
    if (stored === undefined) return undefined;
    const { url, defaultBranch } = stored.request.repository;
    return { projectUid, url, defaultBranch };
  };
  const readCredentials: ReadCredentials = async (projectUid) => {
    const stored = await projectStore.find(projectUid);
    if (stored === undefined) throw new ForbiddenError('forbidden', 'the project of this session is gone');
    const { git: credentials, synced } = await readProjectCredentials(
      stored.namespace,
      stored.request,
      readSecret,
      parseCredentials,
    );
    if (credentials === undefined) throw new ForbiddenError('repository_auth_failed', synced.message);
    return credentials;
  };
  /** Looks into a mirror that is fresh: this replica may never have fetched the project. */
  const branchCommit = async (projectUid: string, branch: string): Promise<string | undefined> => {
    const target = await findRepository(projectUid);
    if (target === undefined) return undefined;
    await mirrors.ensureFresh(target, () => readCredentials(projectUid), MIRROR_FRESH_MS);
    return mirrors.branchCommit(projectUid, branch);
  };

  const policies = makeAgentPolicyStore(database);
  const projectConfig = makeProjectConfig({
    store: projectStore,
    readRegistry: registry.cached,
    readSecret,
    branchCommit,
    defaultModel,
    author: { name: settings.BEEUNI_GIT_AUTHOR_NAME, email: settings.BEEUNI_GIT_AUTHOR_EMAIL },
    settings: workspace.app,
    listPolicies: policies.list,
    limits: config.settingsEnvironment.limits,
  });

  const pushSecrets = async (projectUid: string): Promise<void> => {
    const running = await database.query(listRunningOfProject(projectUid));
    const project = resources.projects.findByUid(projectUid);
    await Promise.all(
      running.map(async ({ uid }) => {
        const session = resources.sessions.findByUid(uid);
        if (session === undefined || project === undefined) return;
        const granted = await projectConfig.sessionEnv(session, project);
        if (granted !== undefined) await wiring.pushEnv(uid, granted.revision, granted.env);
      }),
    );
  };
  const sync = makeProjectSync({
    store: projectStore,
    repositories: makeRepositories(mirrors, makeReadFiles(git)),
    readSecret,
    parseGitCredentials: parseCredentials,
    readRegistry: registry.fresh,
    parseYaml,
    sha256,
    pushSecrets,
    defaultModel,
    pollIntervalSeconds: settings.BEEUNI_GIT_POLL_INTERVAL_SECONDS,
    answerWithinMs: SYNC_ANSWER_MS,
    clock,
    random,
    log,
  });

  const checkModels = (): void => {
    sync.checkModels().catch((error: unknown) => log.warn('models of projects could not be checked', { err: error }));
  };
  let checkedGeneration: number | undefined;
  let counted: readonly string[] = [];
  /** Sets the number of usable models of every provider; one that is gone has none. */
  const countModels = (registered: readonly RegisteredProvider[]): void => {
    for (const provider of counted) wiring.instruments.registryModels.set({ provider }, 0);
    for (const { id, enabled, models: listed } of registered) {
      const usable = listed.filter((model) => enabled && model.enabled && model.retired === undefined).length;
      wiring.instruments.registryModels.set({ provider: id }, usable);
    }
    counted = registered.map(({ id }) => id);
  };
  const providers = makeProvidersApp({
    store: providerStore,
    seal,
    readKeys,
    resolveHost: async (host) => (await systemLookup(host).catch(() => [])).map(({ address }) => address),
    listModels: makeListProviderModels(upstreams),
    findReferences: async (id, models) => [
      ...(await workspace.app.findReferences(id, models)),
      ...(await sync.findReferences(id, models)),
      ...sessionReferences(resources.sessions.list(), id, models),
      ...fallbackReferences((await registry.fresh()).providers, id, models),
    ],
    onChange: async () => checkModels(),
    onSync: (result, provider) => {
      wiring.instruments.registrySyncTotal.inc({ provider, result });
      if (result === 'ok') {
        wiring.instruments.registryLastSuccessTimestampSeconds.set({ provider }, clock.nowMs() / 1_000);
      }
    },
    allowedAddresses: settings.BEEUNI_PROVIDER_ALLOWED_PRIVATE_HOSTS,
    clock,
  });
  const registerEnvModel = async (): Promise<void> => {
    const { envModel } = config;
    if (envModel === undefined) return;
    const readKey = async (): Promise<string | undefined> => {
      const registered = (await registry.fresh()).providers.find(({ id }) => id === ENV_PROVIDER);
      const keys =
        registered === undefined
          ? []
          : await Promise.resolve(registered)
              .then(readKeys)
              .catch(() => []);
      return keys[0]?.secret;
    };
    const isNew = await registerEnvironmentModel(envModel, { providers, readKey });
    if (isNew) log.info('the model of the environment is registered', { provider: ENV_PROVIDER });
  };
  const models = makeModelsApp({ readRegistry: registry.fresh });

  const running = makeRunningCalls(
    (holders) => database.query(findRevokedHolders(holders)),
    makeFindWithdrawn({ readRegistry: registry.cached, readKeys }),
  );
  const gitProxy = makeGitProxy({
    git,
    mirrors,
    whileAllowed: makeRunAsCall(running),
    findRepository,
    readCredentials,
    findPushRule: (sessionUid) => {
      const session = resources.sessions.findByUid(sessionUid);
      if (session === undefined) return undefined;
      const { namespace, name, uid } = session.metadata;
      const project = resources.projects.find(namespace, session.spec.projectRef.name);
      return {
        branch: session.spec.branch?.name ?? defaultBranchName(name, uid),
        forcePush: project?.spec.repository.forcePush ?? 'Forbidden',
      };
    },
    folder: folders.work,
    freshMs: MIRROR_FRESH_MS,
    maxPushBytes: MAX_PUSH_BYTES,
    timeoutMs: settings.BEEUNI_GIT_FETCH_TIMEOUT_SECONDS * 1_000,
    log,
  });

  const budgetWatch = makeBudgetWatch({
    marks: makeBudgetMarks(database, newId),
    findSession: resources.sessions.findByUid,
    findProject: resources.projects.findByUid,
    listProjects: resources.projects.list,
    clock,
    log,
  });
  let forgetSessions = (): void => undefined;
  let forgetProjects = (): void => undefined;
  const gateway = wireGateway({
    ...wiring,
    metering,
    flags: config.flags,
    findProject: resources.projects.findByUid,
    findSession: resources.sessions.findByUid,
    readRegistry: registry.cached,
    readKeys,
    keyPools,
    running,
    resolveRole: async (role, { projectUid }) => {
      const [{ roles }, { providers }] = await Promise.all([workspace.app.current(), registry.cached()]);
      if (!isModelRole(role)) return undefined;
      const allowed = resources.projects.findByUid(projectUid)?.spec.models?.allowed;
      const candidates = { slots: roles, run: null, environment: defaultModel ?? null };
      return resolveRoles(candidates, { providers, allowed })[role].model ?? undefined;
    },
    upstreams,
    onBudgetReached: budgetWatch.refused,
    // Nothing above the bound of the knob may be set, so no body above it need be read.
    maxRequestBytes: BUDGET_KNOBS.max_model_request_bytes.most,
    projectSeries: settings.BEEUNI_METRICS_PROJECT_LABELS ? MAX_PROJECT_SERIES : 0,
    ceilingOfRun: makeCeilingOfRun({
      findTurnSettings: async (sessionUid, turnId) =>
        (await firstRow(database.query, getSessionTurnSettings(sessionUid, turnId)))?.settings,
      settings: workspace.app,
    }),
    calls: { perSecond: settings.BEEUNI_MODEL_CALLS_PER_SECOND, burst: settings.BEEUNI_MODEL_CALLS_BURST },
  });
  const poller = makeProjectPoller({ lookAtDue: sync.lookAtDue, everyMs: POLL_ROUND_MS, clock, random, log });

  return {
    claimConfig: projectConfig.claimConfig,
    sync,
    settings: workspace,
    policies: {
      policies: makeAgentPolicies({ store: policies, projects: projectStore }),
      explain: async (project) => {
        const [stored, saved, current] = await Promise.all([
          projectStore.find(project.metadata.uid),
          policies.list(project.metadata.uid),
          registry.fresh(),
        ]);
        const runtime = stored?.fact?.manifest.lastValid?.runtime ?? project.status?.manifest?.runtime;
        return projectEffective({
          project,
          platformFlags: config.flags,
          config: stored?.config,
          runtime: MANIFEST_RUNTIMES.find((known) => known === runtime),
          registry: current,
          defaultModel,
          policies: saved,
        });
      },
    },
    preparePin: makePreparePin({
      settings: workspace.app,
      readRegistry: registry.cached,
      runModel: projectConfig.runModel,
      findSessionByUid: resources.sessions.findByUid,
      findProject: resources.projects.find,
      environmentModel: defaultModel ?? null,
      sha256,
      clock,
    }),
    judgeModel: async (name) => {
      const verdict = (await models.validate([name])).verdicts[0];
      const result = verdict?.valid === false ? 'refused' : 'valid';
      wiring.instruments.modelValidationTotal.inc({ result, reason: verdict?.code ?? 'none' });
      return verdict;
    },
    findProvider: async (id) => {
      const stored = await providerStore.find(id);
      return stored && [stored.definition, stored.keys.map((key) => [key.id, key.addedAt])];
    },
    handlers: { ...makeProviderHandlers(providers), ...makeModelHandlers(models) },
    internal: makeProjectSyncHandlers(sync),
    gateway: gateway.handlers,
    refreshGateway: gateway.refresh,
    gitProxy,
    background: [
      { name: 'upstreams', start: registerEnvModel, stop: upstreams.close },
      metering.background,
      gateway.background,
      makeRounds(wiring, 'budgets', BUDGET_ROUND_MS, budgetWatch.look),
      {
        name: 'raised budgets',
        start: () => {
          forgetSessions = resources.sessions.onChange(budgetWatch.changed);
          forgetProjects = resources.projects.onChange(budgetWatch.projectChanged);
        },
        stop: () => {
          forgetSessions();
          forgetProjects();
          return budgetWatch.idle();
        },
      },
      makeRounds(wiring, 'old budgets', BUDGET_FORGET_MS, async () => {
        for (const statement of forgetBudgets(BUDGET_DAYS)) await database.query(statement);
        while ((await database.query(forgetUsage(USAGE_DAYS, USAGE_PER_DELETE))).length === USAGE_PER_DELETE);
      }),
      { name: 'projects', start: poller.start, stop: poller.stop },
      { name: 'titles', start: workspace.titles.poke, stop: workspace.titles.stop },
      makeRounds(wiring, 'due titles', TITLE_ROUND_MS, workspace.titles.lookAtDue),
      // Another replica may have changed the registry, or one died after it changed it.
      makeRounds(wiring, 'registry', REGISTRY_ROUND_MS, async () => {
        const generation = await providerStore.generation();
        if (generation === checkedGeneration) return;
        countModels((await registry.fresh()).providers);
        await providerStore.announce();
        await sync.checkModels();
        checkedGeneration = generation;
      }),
      // Whether every provider still answers, for metrics; nothing is changed.
      makeRounds(wiring, 'provider checks', CHECK_ROUND_MS, async () => {
        for (const { id, enabled } of (await registry.fresh()).providers) {
          if (enabled) await providers.check(id, wiring.stopping);
        }
      }),
    ],
  };
};
