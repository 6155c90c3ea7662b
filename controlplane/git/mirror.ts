// Bare mirrors of repositories, one per project, on a disk that is a cache: a lost or damaged mirror is made again.
// One writer at a time per mirror; fetches that are asked for meanwhile share the next run.
// Must not know manifests, sessions or who pushes. Source: 20-control-plane §6.
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#base/clock.ts';
import { type GitCredentials, withCredentials } from './credentials.ts';
import { problemOf, type RepositoryProblem, remoteProblem } from './failure.ts';
import { type HostRule, hostProblem } from './host-rule.ts';
import { makeKeyedLock } from './lock.ts';
import type { Git, GitResult } from './run.ts';

/** The repository of a project. `projectUid` is 1 to 64 letters, digits and dashes. */
export type RepositoryTarget = Readonly<{ projectUid: string; url: string; defaultBranch: string | null }>;

/** What a fetch found: the branch that counts and its commit, or why not. */
export type MirrorSync =
  | Readonly<{ ok: true; defaultBranch: string; commit: string }>
  | Readonly<{ ok: false; problem: RepositoryProblem }>;

/** The mirrors. */
export type Mirrors = Readonly<{
  /** Fetches. Credentials are asked for when the run begins. Never rejects but for faults of this machine. */
  sync: (target: RepositoryTarget, credentials: GitCredentials, signal?: AbortSignal) => Promise<MirrorSync>;
  /** As `sync`, unless a fetch ended well at most `maxAgeMs` ago. */
  ensureFresh: (
    target: RepositoryTarget,
    credentials: () => Promise<GitCredentials>,
    maxAgeMs: number,
  ) => Promise<MirrorSync>;
  /** Folder of the mirror; undefined when there is none on this machine. */
  find: (projectUid: string) => Promise<string | undefined>;
  /** Commit of a branch in the mirror; undefined without mirror or branch. */
  branchCommit: (projectUid: string, branch: string) => Promise<string | undefined>;
  /** Runs `work` while nothing else writes to the mirror. */
  withLock: <T>(projectUid: string, work: () => Promise<T>) => Promise<T>;
  /** Says that the mirror's content is damaged: the next fetch makes it again. */
  distrust: (projectUid: string) => void;
  /** Deletes the mirror. */
  remove: (projectUid: string) => Promise<void>;
}>;

/** What the mirrors need. `directory`: an existing folder of ours. */
export type MirrorPorts = Readonly<{
  git: Git;
  clock: Clock;
  directory: string;
  hostRule: HostRule;
  fetchTimeoutMs: number;
  maxRepositoryBytes: number;
}>;

const UID = /^[A-Za-z0-9-]{1,64}$/;
const LOCAL_TIMEOUT_MS = 60_000;

/** Bytes of all files below a folder; stops counting above `limit`. */
export const directoryBytes = async (path: string, limit: number): Promise<number> => {
  let bytes = 0;
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (bytes > limit) return bytes;
    const child = join(path, entry.name);
    if (entry.isDirectory()) bytes += await directoryBytes(child, limit - bytes);
    else
      bytes += await stat(child).then(
        (found) => found.size,
        () => 0,
      );
  }
  return bytes;
};

/** Makes the mirrors; touches the disk only when asked. */
export const makeMirrors = (ports: MirrorPorts): Mirrors => {
  const { git, clock, directory } = ports;
  const lock = makeKeyedLock();
  const freshAtMs = new Map<string, number>();
  const distrusted = new Set<string>();
  const queued = new Map<string, Readonly<{ key: string; result: Promise<MirrorSync> }>>();

  const pathOf = (projectUid: string): string => {
    if (!UID.test(projectUid)) throw new Error('a project uid does not have the form of one');
    return join(directory, `${projectUid}.git`);
  };
  const exists = (path: string): Promise<boolean> =>
    stat(join(path, 'HEAD')).then(
      () => true,
      () => false,
    );
  const local = (path: string, args: readonly string[]): Promise<GitResult> =>
    git.run({ args: ['--git-dir', path, ...args], timeoutMs: LOCAL_TIMEOUT_MS });

  const drop = async (projectUid: string): Promise<void> => {
    freshAtMs.delete(projectUid);
    distrusted.delete(projectUid);
    await rm(pathOf(projectUid), { recursive: true, force: true });
  };

  /** The folder appears whole or not at all. */
  const create = async (path: string): Promise<void> => {
    await mkdir(directory, { recursive: true });
    const fresh = await mkdtemp(join(directory, 'new-'));
    const made = await git.run({
      args: ['init', '--bare', '--quiet', '--template=', fresh],
      timeoutMs: LOCAL_TIMEOUT_MS,
    });
    if (!made.ok) throw new Error(`a mirror could not be made: ${made.stderr.slice(0, 200)}`);
    await rename(fresh, path);
  };

  const isTooLarge = async (path: string): Promise<boolean> =>
    (await directoryBytes(path, ports.maxRepositoryBytes)) > ports.maxRepositoryBytes;

  const remote = (
    target: RepositoryTarget,
    path: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<GitResult> =>
    git.run({
      args: ['--git-dir', path, ...args],
      env,
      timeoutMs: ports.fetchTimeoutMs,
      signal,
      isTooLarge: () => isTooLarge(path),
    });

  /** The branch that HEAD of the remote names. */
  const headBranch = async (
    target: RepositoryTarget,
    path: string,
    env: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<Readonly<{ branch: string }> | GitResult> => {
    if (target.defaultBranch !== null) return { branch: target.defaultBranch };
    const listed = await remote(target, path, ['ls-remote', '--symref', '--', target.url, 'HEAD'], env, signal);
    if (!listed.ok) return listed;
    const branch = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(listed.stdout.toString('utf8'))?.[1];
    return { branch: branch ?? '' };
  };

  type Attempt = MirrorSync | Readonly<{ ok: false; problem: undefined; stderr: string }>;

  const attempt = async (
    target: RepositoryTarget,
    path: string,
    credentials: GitCredentials,
    signal: AbortSignal | undefined,
  ): Promise<Attempt> =>
    withCredentials(credentials, directory, async (env): Promise<Attempt> => {
      const failed = (result: GitResult): Attempt => {
        const problem = remoteProblem(result, target.url);
        return problem === undefined
          ? { ok: false, problem: undefined, stderr: result.stderr }
          : { ok: false, problem };
      };
      const head = await headBranch(target, path, env, signal);
      if (!('branch' in head)) return failed(head);
      const refs = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];
      const fetched = await remote(
        target,
        path,
        ['fetch', '--prune', '--no-tags', '--no-write-fetch-head', '--quiet', '--end-of-options', target.url, ...refs],
        env,
        signal,
      );
      if (!fetched.ok) return failed(fetched);
      if (await isTooLarge(path)) return { ok: false, problem: problemOf('TooLarge', target.url) };
      const { branch } = head;
      if (branch === '') {
        return {
          ok: false,
          problem: { reason: 'BranchNotFound', message: 'the repository has no branch yet; push a first commit' },
        };
      }
      const commit = await commitOf(path, branch);
      if (commit === undefined) {
        return { ok: false, problem: problemOf('BranchNotFound', target.url, await branchHint(path, branch)) };
      }
      await local(path, ['symbolic-ref', 'HEAD', `refs/heads/${branch}`]);
      if (!(await local(path, ['cat-file', '-e', `${commit}^{tree}`])).ok)
        return { ok: false, problem: undefined, stderr: '' };
      return { ok: true, defaultBranch: branch, commit };
    });

  const commitOf = async (path: string, branch: string): Promise<string | undefined> => {
    const found = await local(path, [
      'rev-parse',
      '--verify',
      '--quiet',
      '--end-of-options',
      `refs/heads/${branch}^{commit}`,
    ]);
    const commit = found.stdout.toString('utf8').trim();
    return found.ok && /^[0-9a-f]{40,64}$/.test(commit) ? commit : undefined;
  };

  const branchHint = async (path: string, branch: string): Promise<string> => {
    const listed = await local(path, ['for-each-ref', '--count=5', '--format=%(refname:strip=2)', 'refs/heads/']);
    const names = listed.stdout.toString('utf8').trim().split('\n').filter(Boolean);
    return ` as ${branch}${names.length === 0 ? '; it has none' : `; it has ${names.join(', ')}`}`;
  };

  const run = async (
    target: RepositoryTarget,
    credentials: GitCredentials,
    signal: AbortSignal | undefined,
  ): Promise<MirrorSync> => {
    const { projectUid } = target;
    const path = pathOf(projectUid);
    const refused = hostProblem(target.url, ports.hostRule);
    if (refused !== undefined) return { ok: false, problem: refused };
    const isSsh = !/^https?:/i.test(target.url);
    if (isSsh && credentials.kind !== 'ssh') return { ok: false, problem: problemOf('AuthFailed', target.url) };
    if (distrusted.has(projectUid)) await drop(projectUid);
    const wasThere = await exists(path);
    if (!wasThere) {
      await rm(path, { recursive: true, force: true });
      await create(path);
    }
    let result = await attempt(target, path, credentials, signal);
    if (!result.ok && result.problem === undefined && wasThere) {
      // The remote is not to blame, so the mirror is: once more from nothing.
      await drop(projectUid);
      await create(path);
      result = await attempt(target, path, credentials, signal);
    }
    if (result.ok) freshAtMs.set(projectUid, clock.monotonicMs());
    else if (!wasThere || result.problem?.reason === 'TooLarge') await drop(projectUid);
    if (result.ok || result.problem !== undefined) return result;
    return { ok: false, problem: problemOf('Unreachable', target.url) };
  };

  const sync: Mirrors['sync'] = (target, credentials, signal) => {
    const { projectUid } = target;
    const key = JSON.stringify([target.url, target.defaultBranch, credentials]);
    const waiting = queued.get(projectUid);
    if (waiting !== undefined && waiting.key === key) return waiting.result;
    const entry = {
      key,
      result: lock(projectUid, () => {
        if (queued.get(projectUid) === entry) queued.delete(projectUid);
        return run(target, credentials, signal);
      }),
    };
    queued.set(projectUid, entry);
    return entry.result;
  };

  return {
    sync,
    ensureFresh: async (target, credentials, maxAgeMs) => {
      const path = pathOf(target.projectUid);
      const atMs = freshAtMs.get(target.projectUid);
      if (atMs !== undefined && clock.monotonicMs() - atMs <= maxAgeMs && !distrusted.has(target.projectUid)) {
        const head = (await local(path, ['symbolic-ref', '--short', 'HEAD'])).stdout.toString('utf8').trim();
        const commit = await commitOf(path, head);
        if (commit !== undefined) return { ok: true, defaultBranch: head, commit };
      }
      return sync(target, await credentials());
    },
    find: async (projectUid) => {
      const path = pathOf(projectUid);
      return (await exists(path)) ? path : undefined;
    },
    branchCommit: async (projectUid, branch) => commitOf(pathOf(projectUid), branch),
    withLock: (projectUid, work) => lock(projectUid, work),
    distrust: (projectUid) => {
      distrusted.add(projectUid);
    },
    remove: (projectUid) => lock(projectUid, () => drop(projectUid)),
  };
};
