// What syncing projects needs from outside, and what is kept of a project. Must not know SQL, git or Kubernetes.
import type { GrantSet, ModelUse } from '#schema/manifest/summary.ts';
import type { ClaimedPackage, ClaimedProjectTool, CompiledAgent, ConfigDirs } from '#schema/wire/claim.ts';
import type { ProjectFact, SyncRequest } from '#schema/wire/sync.ts';
import type { GitCredentials } from '../git/credentials.ts';
import type { MirrorSync, RepositoryTarget } from '../git/mirror.ts';
import type { ObjectFile } from '../git/objects.ts';
import type { SecretAnswer } from '../kubernetes/secrets.ts';

/** Which project. */
export type ProjectKey = Readonly<{ uid: string; namespace: string; name: string }>;

/** What sessions are started by: the last commit whose manifest was valid, compiled. */
export type ProjectConfig = Readonly<{
  commit: string;
  defaultAgent: string;
  /** Enabled agents. */
  agents: readonly CompiledAgent[];
  /** Agent to the secrets that the manifest grants it. */
  secrets: Readonly<Record<string, GrantSet>>;
  models: readonly ModelUse[];
  /** Tools of Beeuni that are loaded; absent is all of them. */
  beeuniTools?: readonly string[] | undefined;
  projectTools?: readonly ClaimedProjectTool[] | undefined;
  configDirs?: ConfigDirs | undefined;
  /** Agent to its packages of the harness pi. */
  piPackages?: Readonly<Record<string, readonly ClaimedPackage[]>> | undefined;
}>;

/** One stored project. `fact` and `config` are absent before the first answer and the first valid manifest. */
export type StoredProject = ProjectKey &
  Readonly<{
    request: SyncRequest;
    fact: ProjectFact | undefined;
    config: ProjectConfig | undefined;
    secretsRevision: number;
  }>;

/** What a look at a project found. */
export type ProjectResult = Readonly<{
  fact: ProjectFact;
  config: ProjectConfig | undefined;
  /** When to look again, RFC 3339; null is never by itself. */
  dueAt: string | null;
  /** Whether the operator has to hear of it. */
  isNews: boolean;
}>;

/** The table of projects. Errors of all: UnavailableError `database_unavailable`. */
export type ProjectStore = Readonly<{
  /** Keeps a request, unless a newer generation is there, and gives back what is stored. */
  saveRequest: (key: ProjectKey, request: SyncRequest, dueAt: string) => Promise<StoredProject>;
  find: (uid: string) => Promise<StoredProject | undefined>;
  /** All projects after a uid, by uid. */
  list: (afterUid: string, limit: number) => Promise<readonly StoredProject[]>;
  /** Keeps a result and, for news, raises the fact in the same transaction. Nothing happens for a project that is gone. */
  saveResult: (uid: string, result: ProjectResult) => Promise<void>;
  /** Uids that are due, each given to one caller until `leaseUntil`. */
  takeDue: (now: string, leaseUntil: string, limit: number) => Promise<readonly string[]>;
  /** The new revision; undefined when there is no such project. */
  raiseSecretsRevision: (uid: string) => Promise<number | undefined>;
  /** Deletes the project and says that it is gone. */
  remove: (uid: string) => Promise<void>;
}>;

/** Reads a Secret of a namespace. Errors: UnavailableError `api_server_unavailable`. */
export type ReadSecret = (namespace: string, name: string) => Promise<SecretAnswer>;

/** Repositories, as far as syncing uses them. */
export type Repositories = Readonly<{
  sync: (target: RepositoryTarget, credentials: GitCredentials) => Promise<MirrorSync>;
  /** Files of a commit, each up to `maxBytes`. Rejects when the mirror is damaged; the next sync makes it again. */
  readFiles: (
    projectUid: string,
    commit: string,
    paths: readonly string[],
    maxBytes: number,
  ) => Promise<ReadonlyMap<string, ObjectFile>>;
  branchCommit: (projectUid: string, branch: string) => Promise<string | undefined>;
  remove: (projectUid: string) => Promise<void>;
}>;

/** Credentials from a Secret's data, for a URL. */
export type ParseGitCredentials = (
  data: Readonly<Record<string, Buffer>>,
  url: string,
) =>
  | Readonly<{ ok: true; credentials: GitCredentials }>
  | Readonly<{ ok: false; reason: 'KeyMissing' | 'TypeUnsupported'; message: string }>;
