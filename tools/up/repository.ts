// Repositories of the demo: makes the sample one, pushes a local one into the cluster's git server, shows a pushed branch.
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { runProgram } from './run-program.ts';

const fixedTime = '2026-01-01T00:00:00Z';
const identity = {
  GIT_AUTHOR_NAME: 'Sample',
  GIT_AUTHOR_EMAIL: 'sample@example.com',
  GIT_COMMITTER_NAME: 'Sample',
  GIT_COMMITTER_EMAIL: 'sample@example.com',
  GIT_AUTHOR_DATE: fixedTime,
  GIT_COMMITTER_DATE: fixedTime,
  GIT_CONFIG_GLOBAL: '/dev/null',
};

/** A fresh work tree of examples/repository with one commit, the same commit every time. */
export const sampleRepository = async (): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'beeuni-sample-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  cpSync(new URL('../../examples/repository', import.meta.url), folder, { recursive: true });
  const git = (...args: string[]): Promise<string> => runProgram('git', ['-C', folder, ...args], { env: identity });
  await git('init', '-q', '-b', 'main');
  await git('add', '-A');
  await git('commit', '-q', '-m', 'Sample project');
  return folder;
};

/** Why `given` is neither a URL nor the path of a git repository with a commit; undefined when it is, or is left out. */
export const repositoryProblem = async (given: string | undefined): Promise<string | undefined> => {
  if (given === undefined || /^[a-z]+:\/\/|^[^/]+@[^/]+:/.test(given)) return undefined;
  const path = resolve(given);
  if (!existsSync(path)) return `there is no folder ${path}; REPO takes a URL or the path of a git repository`;
  return await runProgram('git', ['-c', `safe.directory=${path}`, '-C', path, 'rev-parse', 'HEAD']).then(
    () => undefined,
    () => `${path} is no git repository with a commit`,
  );
};

/** Pushes the current branch of a local repository as `main` or its own name; says what was done. */
export const pushRepository = async (path: string, url: string, name: string): Promise<string> => {
  const git = (...args: string[]): Promise<string> =>
    runProgram('git', ['-c', `safe.directory=${path}`, '-C', path, ...args], { timeoutMs: 300_000 });
  const branch = (
    await git('rev-parse', '--abbrev-ref', 'HEAD').catch(() => {
      throw new Error(`${path} is no git repository with a commit`);
    })
  ).trim();
  const target = branch === 'HEAD' ? 'main' : branch;
  const head = (await git('rev-parse', 'HEAD')).trim();
  const there = await git('ls-remote', url, `refs/heads/${target}`).catch(() => '');
  if (there.startsWith(head)) return `repository ${name}: ${target} is in the cluster already`;
  await git('push', '--force', url, `HEAD:refs/heads/${target}`);
  return `repository ${name}: pushed ${target} (${head.slice(0, 12)}) into the cluster`;
};

/** The newest commit of a branch as text: id, author, subject, changed files with their content. */
export const showBranch = async (url: string, branch: string): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'beeuni-show-'));
  try {
    await runProgram('git', ['clone', '-q', '--depth', '2', '--branch', branch, url, folder]);
    return await runProgram('git', [
      '-C',
      folder,
      'show',
      '--stat',
      '--patch',
      '--format=%ncommit %H%nAuthor: %an <%ae>%n%n    %s%n',
      'HEAD',
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
