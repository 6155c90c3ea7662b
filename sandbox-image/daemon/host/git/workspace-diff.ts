// What the workspace holds beyond the base commit. Git reads a repository that the agent owns: no driver, filter, monitor or
// submodule of it runs for the daemon. Must not know who asks. Source: 20-control-plane §3, FF8.
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { ConflictError } from '#base/errors.ts';
import type { WorkspaceDiff } from '#schema/wire/files.ts';
import { gitMessage } from './checkout.ts';
import type { RunGit } from './run-git.ts';

const MAX_FILES = 2_000;
const MAX_PATCH = 1_048_576;

/** The repository is named, so that no setting in it can point to another. */
const HERE = ['--git-dir=.git', '--work-tree=.'] as const;
const DIFF = [
  'diff',
  '--no-color',
  '--no-ext-diff',
  '--no-textconv',
  '--no-renames',
  '--ignore-submodules=all',
] as const;

/** Options that turn the content filters of the repository off: each is a program that the agent chose. */
const withoutFilters = async (run: RunGit): Promise<readonly string[]> => {
  const words = ['config', '--local', '--includes', '--null', '--name-only', '--get-regexp', '^filter\\.'];
  const found = await run([...HERE, ...words]);
  const names = new Set(
    found.stdout
      .split('\0')
      .filter((key) => key.startsWith('filter.'))
      .map((key) => key.slice('filter.'.length, key.lastIndexOf('.'))),
  );
  return [...names]
    .slice(0, 64)
    .flatMap((name) =>
      ['clean', 'smudge', 'process']
        .flatMap((part) => ['-c', `filter.${name}.${part}=`])
        .concat('-c', `filter.${name}.required=false`),
    );
};

const count = (text: string | undefined): number | null =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : null;

/** Records of an output that git ends with NUL; what the limit of the output has cut is left out. */
const records = (text: string): readonly string[] => text.slice(0, text.lastIndexOf('\0') + 1).split('\0');

/** Reads `--numstat -z`: additions, deletions, path. Pure. */
export const parseNumstat = (text: string): WorkspaceDiff['files'] =>
  records(text)
    .filter((line) => line.includes('\t'))
    .map((line) => {
      const [additions, deletions, ...path] = line.split('\t');
      return { path: path.join('\t'), additions: count(additions), deletions: count(deletions) };
    });

/** Whether a path is what git cannot read, and would wait for or refuse: a pipe, a socket, a device. */
const isUnreadable = (workspace: string, path: string): boolean => {
  try {
    const stat = lstatSync(join(workspace, path));
    return stat.isFIFO() || stat.isSocket() || stat.isBlockDevice() || stat.isCharacterDevice();
  } catch {
    return false;
  }
};

/** The diff against a commit. Rejects with ConflictError `workspace_unreadable` when git cannot tell. */
export const diffWorkspace = async (run: RunGit, workspace: string, baseCommit: string): Promise<WorkspaceDiff> => {
  const inside = await run([...HERE, 'rev-parse', '--quiet', '--git-dir']);
  if (inside.code !== 0) {
    throw new ConflictError(
      'workspace_unreadable',
      'the workspace holds no repository any more; the next prompt makes it again, and keeps the files',
    );
  }
  const filters = await withoutFilters(run);
  const git = async (...words: readonly string[]): Promise<string> => {
    const result = await run([...HERE, ...filters, ...words]);
    if (result.code === 0) return result.stdout;
    throw new ConflictError('workspace_unreadable', `git ${words[0]} failed: ${gitMessage(result.stderr)}`);
  };
  const head = (await git('rev-parse', '--quiet', '--verify', 'HEAD').catch(() => '')).trim();
  // Git refuses the whole diff for one tracked file that became a pipe; such files are named without their content.
  const special = records(await git('ls-files', '-z')).filter((path) => path !== '' && isUnreadable(workspace, path));
  const paths = ['--', '.', ...special.map((path) => `:(top,exclude,literal)${path}`)];
  const counts = await git(...DIFF, '--numstat', '-z', baseCommit, ...paths);
  const unread = special.map((path) => ({ path, additions: null, deletions: null }));
  const files = [...parseNumstat(counts), ...unread];
  const others = await git('ls-files', '--others', '--exclude-standard', '-z');
  const untracked = records(others).filter((path) => path !== '');
  const patch = await git(...DIFF, '--unified=3', baseCommit, ...paths);
  return {
    baseCommit,
    headCommit: head === '' ? null : head,
    files: files.slice(0, MAX_FILES),
    untracked: untracked.slice(0, MAX_FILES),
    patch: patch.slice(0, MAX_PATCH),
    truncated:
      files.length > MAX_FILES ||
      untracked.length > MAX_FILES ||
      [counts, others, patch].some((text) => text.length >= MAX_PATCH),
  };
};
