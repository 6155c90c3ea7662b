// Brings the session branch into the workspace: continues what is there, else fetches through the relay and writes the
// files, with the branch as the last step, so that a half-done checkout is recognised and done again.
// Must not know the control plane; git speaks to a loopback address without any credential. Source: A22, D9, sandbox-pod §2.
import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ConflictError, UnavailableError } from '#base/errors.ts';
import type { RunGit } from './run-git.ts';

/** What to check out. */
export type CheckoutRequest = Readonly<{
  branch: string;
  baseCommit: string;
  author: Readonly<{ name: string; email: string }>;
  /** Loopback URL of the git relay. */
  remoteUrl: string;
}>;

/**
 * What is checked out. `kept`: the workspace of an earlier start, with its uncommitted files; then it is not known
 * which of its commits the remote has.
 */
export type Checkout = Readonly<{ branch: string; commit: string; kept: boolean }>;

const FETCH_TIMEOUT_MS = 600_000;
const CHECKOUT_TIMEOUT_MS = 300_000;

/** The last line that says something, without progress. At most 512 characters. */
export const gitMessage = (stderr: string): string => {
  const lines = stderr
    .split(/[\r\n]+/)
    .map((line) => line.replace(/^(fatal|error|remote): /, '').trim())
    .filter((line) => line !== '');
  return (
    lines.findLast((line) => /(fatal|error|denied|refused|not found|rejected)/i.test(line)) ??
    lines.at(-1) ??
    ''
  ).slice(0, 512);
};

const must = async (run: RunGit, args: readonly string[], options?: Parameters<RunGit>[1]): Promise<string> => {
  const result = await run(args, options);
  if (result.code !== 0) {
    throw new UnavailableError('repository_unreachable', `git ${args[0]} failed: ${gitMessage(result.stderr)}`, {
      detail: result.stderr.slice(-2_000),
    });
  }
  return result.stdout.trim();
};

/** Lock files that a killed git leaves; no git runs when this is called. */
const removeLocks = (workspace: string, branch: string): void => {
  for (const name of ['index.lock', 'HEAD.lock', 'config.lock', `refs/heads/${branch}.lock`]) {
    rmSync(join(workspace, '.git', name), { force: true });
  }
};

const configure = async (run: RunGit, request: CheckoutRequest): Promise<void> => {
  const settings: readonly (readonly [string, string])[] = [
    ['user.name', request.author.name],
    ['user.email', request.author.email],
    ['remote.origin.url', request.remoteUrl],
    ['remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*'],
    [`branch.${request.branch}.remote`, 'origin'],
    [`branch.${request.branch}.merge`, `refs/heads/${request.branch}`],
    ['push.default', 'current'],
  ];
  for (const [key, value] of settings) await must(run, ['config', '--local', '--replace-all', key, value]);
};

/** The branch that is checked out; undefined for none, and where git finds no repository. */
export const currentBranch = async (run: RunGit): Promise<string | undefined> => {
  const result = await run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  return result.code === 0 ? result.stdout.trim() : undefined;
};

/** The commit of a name, undefined when there is none. */
export const commitOf = async (run: RunGit, name: string): Promise<string | undefined> => {
  const result = await run(['rev-parse', '--quiet', '--verify', `${name}^{commit}`]);
  return result.code === 0 ? result.stdout.trim() : undefined;
};

/** Commits that a turn made beside the session branch. `keptAs`: the local branch that holds them. */
export type CommitsAside = Readonly<{ commit: string; commits: number; keptAs: string }>;

/**
 * What HEAD holds that the session branch does not, while another branch or none is checked out; undefined: nothing.
 * Commits of no branch get one, `kept/` and their number, so that a switch back leaves them findable.
 */
export const commitsAside = async (run: RunGit, branch: string): Promise<CommitsAside | undefined> => {
  const current = await currentBranch(run);
  if (current === branch) return undefined;
  const commit = await commitOf(run, 'HEAD');
  if (commit === undefined) return undefined;
  const counted = await run(['rev-list', '--count', commit, '--not', `refs/heads/${branch}`]);
  const commits = counted.code === 0 ? Number(counted.stdout.trim()) : 0;
  if (commits === 0) return undefined;
  const keptAs = current ?? `kept/${commit.slice(0, 12)}`;
  if (current === undefined) await must(run, ['update-ref', `refs/heads/${keptAs}`, commit]);
  return { commit, commits, keptAs };
};

/**
 * Makes sure that the workspace is on the session branch. An agent may have left another one behind: git is asked to
 * switch back, which keeps uncommitted files or refuses. Rejects with ConflictError `conflict` when it refuses. Source: A22.
 */
export const ensureBranch = async (run: RunGit, branch: string): Promise<void> => {
  const current = await currentBranch(run);
  if (current === branch) return;
  const switched = await run(['switch', '--no-guess', '--quiet', branch], { timeoutMs: CHECKOUT_TIMEOUT_MS });
  if (switched.code !== 0) {
    throw new ConflictError(
      'conflict',
      `the workspace is on ${current ?? 'a detached commit'}, not on the session branch ${branch}: ${gitMessage(switched.stderr)}`,
    );
  }
};

const checkOutFresh = async (
  run: RunGit,
  request: CheckoutRequest,
  signal: AbortSignal,
  keepFiles = false,
): Promise<void> => {
  await must(run, ['init', '--quiet', '--template=', `--initial-branch=${request.branch}`, '.']);
  await must(run, ['symbolic-ref', 'HEAD', `refs/heads/${request.branch}`]);
  await configure(run, request);
  await must(run, ['fetch', '--quiet', '--prune', 'origin'], { timeoutMs: FETCH_TIMEOUT_MS, signal });
  const remote = await commitOf(run, `refs/remotes/origin/${request.branch}`);
  const start = remote ?? (await commitOf(run, request.baseCommit));
  if (start === undefined) {
    throw new UnavailableError(
      'repository_unreachable',
      `the base commit ${request.baseCommit} is not in the repository`,
    );
  }
  const write = keepFiles ? [] : ['-u'];
  await must(run, ['read-tree', '--reset', ...write, start], { timeoutMs: CHECKOUT_TIMEOUT_MS, signal });
  await must(run, ['update-ref', `refs/heads/${request.branch}`, start]);
};

const isRepository = async (run: RunGit): Promise<boolean> => {
  const inside = await run(['rev-parse', '--quiet', '--git-dir']);
  return inside.code === 0 && inside.stdout.trim() === '.git' && (await commitOf(run, 'HEAD')) !== undefined;
};

/** Names beside `.git`. */
const filesOf = (workspace: string): readonly string[] => readdirSync(workspace).filter((name) => name !== '.git');

/**
 * Makes the repository again that an agent removed or broke; undefined when it is there. Files are kept as they are, and
 * only an empty folder is filled; what is left of the old repository lies beside it. Rejects as checkOut.
 */
export const restoreRepository = async (
  run: RunGit,
  workspace: string,
  request: CheckoutRequest,
  signal: AbortSignal,
): Promise<Readonly<{ commit: string; filesKept: boolean }> | undefined> => {
  if (await isRepository(run)) return undefined;
  const filesKept = filesOf(workspace).length > 0;
  if (readdirSync(workspace).includes('.git')) {
    rmSync(join(workspace, '.git.broken'), { recursive: true, force: true });
    renameSync(join(workspace, '.git'), join(workspace, '.git.broken'));
  }
  await checkOutFresh(run, request, signal, filesKept);
  return { commit: await must(run, ['rev-parse', 'HEAD']), filesKept };
};

/** Checks out, or continues. Rejects with UnavailableError (try again) or ConflictError (the wrong branch, see ensureBranch). */
export const checkOut = async (
  run: RunGit,
  workspace: string,
  request: CheckoutRequest,
  signal: AbortSignal,
): Promise<Checkout> => {
  removeLocks(workspace, request.branch);
  const kept = await isRepository(run);
  if (kept) {
    await configure(run, request);
    await ensureBranch(run, request.branch);
  } else {
    await checkOutFresh(run, request, signal);
  }
  const commit = await must(run, ['rev-parse', 'HEAD']);
  return { branch: request.branch, commit, kept };
};
