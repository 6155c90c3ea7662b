// Looks at a project's Secrets, repository, manifest and models and says what it found, as one fact.
// One look at a time per project on a replica; whoever asks meanwhile gets the next one. Must not know SQL, git or HTTP.
// Source: 10-kubernetes §6, 20-control-plane §6.
import type { Clock } from '#base/clock.ts';
import { sleep } from '#base/clock.ts';
import { ConflictError, NotFoundError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import { sameJson } from '#base/same-json.ts';
import type { ManifestProblem, ParseYaml } from '#schema/manifest/source.ts';
import type { ProjectFact, SyncRequest } from '#schema/wire/sync.ts';
import { readProjectCredentials } from './project-credentials.ts';
import { judgeManifest, judgeManifestText, syncedManifestOf, unreadManifest } from './project-manifest.ts';
import { checkProjectModels, type ModelNaming, referencesOf } from './project-models.ts';
import type {
  ParseGitCredentials,
  ProjectConfig,
  ProjectKey,
  ProjectStore,
  ReadSecret,
  Repositories,
  StoredProject,
} from './project-ports.ts';
import type { FindProviderReferences, ReadRegistry } from './provider-ports.ts';

/** What syncing needs. Units: seconds, milliseconds. */
export type ProjectSyncPorts = Readonly<{
  store: ProjectStore;
  repositories: Repositories;
  readSecret: ReadSecret;
  parseGitCredentials: ParseGitCredentials;
  readRegistry: ReadRegistry;
  parseYaml: ParseYaml;
  sha256: (text: string) => string;
  /** Tells running sandboxes of a project that their granted secrets changed. */
  pushSecrets: (projectUid: string) => Promise<void>;
  /** Model of sessions for which no other layer names one. */
  defaultModel: string | undefined;
  pollIntervalSeconds: number;
  /** How long a sync call waits for the result before it answers `running`. */
  answerWithinMs: number;
  clock: Clock;
  random: () => number;
  log: Logger;
}>;

/** The functions about syncing. Errors of all: UnavailableError `database_unavailable`. */
export type ProjectSync = Readonly<{
  /** Keeps the request, looks, and answers with what was found; `running` when that takes longer. Repeating it is harmless. */
  sync: (key: ProjectKey, request: SyncRequest, signal: AbortSignal) => Promise<ProjectFact>;
  /** Looks at projects that are due, a few at a time. */
  lookAtDue: () => Promise<void>;
  /** Checks the models of every project again: the registry changed. One pass. */
  checkModels: () => Promise<void>;
  /** Forgets a project and its mirror. Repeating it is harmless. */
  close: (uid: string) => Promise<void>;
  /** A Secret changed: looks again, and pushes granted secrets to running sandboxes. */
  secretChanged: (uid: string, secretName: string) => Promise<void>;
  findFact: (uid: string) => Promise<ProjectFact | undefined>;
  /** Judges a manifest text with the agent files of the newest commit. Errors: ConflictError while none was read. */
  judgeText: (
    uid: string,
    text: string,
  ) => Promise<Readonly<{ errors: readonly ManifestProblem[]; warnings: readonly ManifestProblem[] }>>;
  findReferences: FindProviderReferences;
  /** Resolves when no look runs on this replica. */
  idle: () => Promise<void>;
}>;

/** A look that died with its replica is made again after so long. */
const LEASE_SECONDS = 120;
/** With polling off, a project that fails is still looked at so often, so that it heals. */
const HEAL_SECONDS = 300;
const DUE_AT_ONCE = 4;
const PAGE = 100;

const namingOf = ({ request, config }: Pick<StoredProject, 'request' | 'config'>): ModelNaming => ({
  defaults: request.defaults,
  allowedModels: request.allowedModels,
  gateway: request.features['llm_gateway'] !== false,
  config,
});

const releaseOf = (request: SyncRequest): ProjectFact['release'] => ({
  reason: request.features['config_releases'] === false ? 'ReleasesOff' : 'NotBuilt',
  current: null,
  commit: null,
});

/** Whether two facts say the same. The registry's generation grows with every change of it and is no news by itself. */
const sameFact = (a: ProjectFact, b: ProjectFact): boolean => {
  const core = (fact: ProjectFact) => ({ ...fact, models: { ...fact.models, registryGeneration: 0 } });
  return sameJson(core(a), core(b));
};

/** What is known before the first look has ended. */
const runningFact = ({ uid, request, fact }: StoredProject): ProjectFact =>
  fact === undefined
    ? {
        kind: 'project',
        uid,
        generation: request.generation,
        syncToken: request.syncToken,
        state: 'running',
        repository: {
          reason: 'Syncing',
          message: 'the first fetch has not ended yet',
          defaultBranch: null,
          commit: null,
        },
        credentials: { reason: 'NotRead', message: '' },
        manifest: unreadManifest(request.manifestPath),
        models: {
          reason: 'RegistryUnavailable',
          message: 'not checked yet',
          default: null,
          platform: null,
          registryGeneration: 0,
          invalid: [],
        },
        release: releaseOf(request),
        budget: NOTHING_REACHED,
      }
    : { ...fact, generation: request.generation, syncToken: request.syncToken, state: 'running' };

const NOTHING_REACHED: ProjectFact['budget'] = { reached: false, runsReached: false, message: '' };

/** Makes the functions. */
export const makeProjectSync = (ports: ProjectSyncPorts): ProjectSync => {
  const { store, repositories, clock, log } = ports;
  /** Project uid to the commit and manifest path that this process judged last. */
  const judged = new Map<string, string>();
  const running = new Map<string, Promise<void>>();
  const next = new Map<string, Promise<void>>();

  const inSeconds = (seconds: number): string => new Date(clock.nowMs() + seconds * 1000).toISOString();

  const dueAfter = (request: SyncRequest, fact: ProjectFact): string | null => {
    const seconds = request.repository.pollIntervalSeconds ?? ports.pollIntervalSeconds;
    const isWell = fact.repository.reason === 'Synced' && ['Found', 'NotNeeded'].includes(fact.credentials.reason);
    if (seconds === 0) return isWell ? null : inSeconds(HEAL_SECONDS);
    return inSeconds(seconds * (0.9 + ports.random() * 0.2));
  };

  type Repository = ProjectFact['repository'];

  const lookAtRepository = async (
    stored: StoredProject,
    credentials: Awaited<ReturnType<typeof readProjectCredentials>>,
  ): Promise<Repository> => {
    const { request, fact } = stored;
    const before = { defaultBranch: fact?.repository.defaultBranch ?? null, commit: fact?.repository.commit ?? null };
    if (credentials.git === undefined) {
      return {
        ...before,
        reason: 'AuthFailed',
        message: `the credentials cannot be used: ${credentials.synced.message}`.slice(0, 1024),
      };
    }
    const { url, defaultBranch } = request.repository;
    const result = await repositories.sync({ projectUid: stored.uid, url, defaultBranch }, credentials.git);
    return result.ok
      ? { reason: 'Synced', message: '', defaultBranch: result.defaultBranch, commit: result.commit }
      : { ...before, reason: result.problem.reason, message: result.problem.message.slice(0, 1024) };
  };

  type Manifest = Readonly<{ synced: ProjectFact['manifest']; config: ProjectConfig | undefined }>;

  const lookAtManifest = async (stored: StoredProject, repository: Repository): Promise<Manifest> => {
    const { uid, request, fact, config } = stored;
    const path = request.manifestPath;
    const { commit } = repository;
    const before = fact?.manifest ?? unreadManifest(path);
    if (commit === null) return { synced: before, config };
    const key = `${commit} ${path}`;
    const isKnown = judged.get(uid) === key && fact?.repository.commit === commit && before.path === path;
    if (repository.reason !== 'Synced' || isKnown) return { synced: before, config };
    const result = await judgeManifest(
      path,
      commit,
      (paths, max) => repositories.readFiles(uid, commit, paths, max),
      ports.parseYaml,
    );
    judged.set(uid, key);
    return {
      synced: syncedManifestOf(path, commit, result, fact?.manifest, ports.sha256),
      config: result.config ?? config,
    };
  };

  const lookAtModels = async (
    naming: ModelNaming,
    before: ProjectFact['models'] | undefined,
  ): Promise<ProjectFact['models']> => {
    try {
      return checkProjectModels(naming, await ports.readRegistry(), ports.defaultModel);
    } catch (error) {
      log.warn('the models of a project could not be checked', { err: error });
      const kept = before ?? { default: null, platform: null, registryGeneration: 0, invalid: [] };
      return { ...kept, reason: 'RegistryUnavailable', message: 'the provider registry cannot be read now' };
    }
  };

  const look = async (uid: string): Promise<void> => {
    const stored = await store.find(uid);
    if (stored === undefined) return;
    const { request, fact: before, namespace } = stored;
    const credentials = await readProjectCredentials(namespace, request, ports.readSecret, ports.parseGitCredentials);
    const repository = await lookAtRepository(stored, credentials);
    const manifest = await lookAtManifest(stored, repository);
    const models = await lookAtModels({ ...namingOf(stored), config: manifest.config }, before?.models);
    const fact: ProjectFact = {
      kind: 'project',
      uid,
      generation: request.generation,
      syncToken: request.syncToken,
      state: 'done',
      repository,
      credentials: credentials.synced,
      manifest: manifest.synced,
      models,
      release: releaseOf(request),
      // Kept by who watches budgets.
      budget: before?.budget ?? NOTHING_REACHED,
    };
    const isNews = before === undefined || !sameFact(before, fact);
    await store.saveResult(uid, { fact, config: manifest.config, dueAt: dueAfter(request, fact), isNews });
    if (isNews) {
      log.info('a project was synced', {
        project: stored.name,
        namespace,
        repository: repository.reason,
        manifest: manifest.synced.reason,
        models: models.reason,
      });
    }
  };

  /** A look that begins after this call: now, or behind the one that runs, shared by all who ask meanwhile. */
  const lookSoon = (uid: string): Promise<void> => {
    const waiting = next.get(uid);
    if (waiting !== undefined) return waiting;
    const before = running.get(uid);
    if (before === undefined) return begin(uid);
    const after = before
      .catch(() => undefined)
      .then(() => {
        next.delete(uid);
        return begin(uid);
      });
    next.set(uid, after);
    return after;
  };
  const begin = (uid: string): Promise<void> => {
    const run = look(uid).finally(() => {
      if (running.get(uid) === run) running.delete(uid);
    });
    running.set(uid, run);
    return run;
  };
  /** As `lookSoon`, for nobody who waits: a failure is logged, and the look is made again when it is due. */
  const lookBehind = async (uid: string): Promise<void> => {
    try {
      await lookSoon(uid);
    } catch (error) {
      log.warn('a project could not be synced; it is tried again', { project: uid, err: error });
    }
  };

  const eachProject = async (work: (stored: StoredProject) => Promise<void> | void): Promise<void> => {
    let after = '';
    for (;;) {
      const page = await store.list(after, PAGE);
      for (const stored of page) await work(stored);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last.uid;
    }
  };

  return {
    sync: async (key, request, signal) => {
      const stored = await store.saveRequest(key, request, inSeconds(LEASE_SECONDS));
      const run = lookSoon(key.uid);
      const isDone = await Promise.race([
        run.then(() => true),
        sleep(clock, ports.answerWithinMs, signal).then(() => false),
      ]);
      if (!isDone)
        run.catch((error: unknown) =>
          log.warn('a project could not be synced; it is tried again', { project: key.name, err: error }),
        );
      const found = isDone ? await store.find(key.uid) : undefined;
      return found?.fact ?? runningFact(stored);
    },
    lookAtDue: async () => {
      const now = new Date(clock.nowMs()).toISOString();
      const due = await store.takeDue(now, inSeconds(LEASE_SECONDS), DUE_AT_ONCE);
      await Promise.all(due.map(lookBehind));
    },
    checkModels: async () => {
      const registry = await ports.readRegistry();
      await eachProject(async (stored) => {
        const { fact, config } = stored;
        if (fact === undefined) return;
        const models = checkProjectModels(namingOf(stored), registry, ports.defaultModel);
        const next: ProjectFact = { ...fact, models };
        if (sameFact(fact, next)) return;
        await store.saveResult(stored.uid, { fact: next, config, dueAt: dueAfter(stored.request, next), isNews: true });
      });
    },
    close: async (uid) => {
      await store.remove(uid);
      judged.delete(uid);
      // A look that runs would make the mirror again.
      await running.get(uid)?.catch(() => undefined);
      await repositories.remove(uid);
    },
    secretChanged: async (uid, secretName) => {
      const stored = await store.find(uid);
      if (stored === undefined) return;
      void lookBehind(uid);
      if (!stored.request.secrets.some((secret) => secret.secretName === secretName)) return;
      await store.raiseSecretsRevision(uid);
      await ports.pushSecrets(uid);
    },
    findFact: async (uid) => (await store.find(uid))?.fact,
    judgeText: async (uid, text) => {
      const stored = await store.find(uid);
      if (stored === undefined) throw new NotFoundError('project_not_found', 'the project has not been synced yet');
      const commit = stored.fact?.repository.commit;
      if (commit === null || commit === undefined)
        throw new ConflictError('conflict', 'no commit of the repository has been read yet');
      const read = (paths: readonly string[], max: number) => repositories.readFiles(uid, commit, paths, max);
      const { verdict } = await judgeManifestText(stored.request.manifestPath, text, commit, read, ports.parseYaml);
      return { errors: verdict.errors, warnings: verdict.warnings };
    },
    findReferences: async (providerId, models) => {
      const references: string[] = [];
      await eachProject((stored) => {
        references.push(
          ...referencesOf({ ...namingOf(stored), namespace: stored.namespace, name: stored.name }, providerId, models),
        );
      });
      return references;
    },
    idle: async () => {
      while (running.size > 0 || next.size > 0) {
        await Promise.all([...running.values(), ...next.values()].map((run) => run.catch(() => undefined)));
      }
    },
  };
};
