// Files of one commit, copied out of the repository's objects: what the working tree holds by now does not matter, and no
// filter, hook or replacement of the repository has a say. Links and submodules are left out.
// Must not know what the files are for. Source: A57, A157, FF7, FF8.
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LimitError, UnavailableError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import { gitEnvironment, type RunGit } from './run-git.ts';

/** What to copy. `paths`: files and folders, relative to the root of the repository. */
export type BaseFilesRequest = Readonly<{
  workspace: string;
  searchPath: string;
  commit: string;
  paths: readonly string[];
  target: string;
  signal: AbortSignal;
}>;

/** Bounds of a copy. Units: bytes. */
const MAX_FILES = 4_000;
const MAX_BYTES = 33_554_432;
const FETCH_TIMEOUT_MS = 600_000;
const LIST_LIMIT = 1_000_000;

type Entry = Readonly<{ id: string; path: string; executable: boolean }>;

const isPlainPath = (path: string): boolean =>
  path.split('/').every((name) => name !== '' && name !== '.' && name !== '..' && name.toLowerCase() !== '.git');

/** The regular files of `git ls-tree -r -z`. Pure. */
export const entriesOf = (listing: string): readonly Entry[] =>
  listing.split('\0').flatMap((line) => {
    const [, mode, id = '', path = ''] = /^(\d{6}) blob ([0-9a-f]{40,64})\t([\s\S]+)$/.exec(line) ?? [];
    const isFile = mode === '100644' || mode === '100755';
    return isFile && isPlainPath(path) ? [{ id, path, executable: mode === '100755' }] : [];
  });

/** The contents of blobs, in order. */
const readBlobs = (request: BaseFilesRequest, ids: readonly string[]): Promise<readonly Buffer[]> =>
  new Promise((resolve, reject) => {
    const child = spawn('git', ['--no-replace-objects', 'cat-file', '--batch'], {
      cwd: request.workspace,
      env: gitEnvironment(request.workspace, request.searchPath),
      stdio: ['pipe', 'pipe', 'ignore'],
      signal: request.signal,
      killSignal: 'SIGKILL',
    });
    const parts: Buffer[] = [];
    let size = 0;
    child.stdout.on('data', (part: Buffer) => {
      size += part.length;
      parts.push(part);
      if (size > MAX_BYTES) child.kill('SIGKILL');
    });
    child.stdin.on('error', () => {});
    child.stdin.end(ids.map((id) => `${id}\n`).join(''));
    child.once('error', reject);
    child.once('close', () => {
      if (size > MAX_BYTES) {
        reject(new LimitError('repository_too_large', `the configuration has more than ${MAX_BYTES} bytes`));
        return;
      }
      const all = Buffer.concat(parts);
      const blobs: Buffer[] = [];
      for (let at = 0; at < all.length; ) {
        const end = all.indexOf('\n', at);
        const length = Number(/^\S+ blob (\d+)$/.exec(all.toString('latin1', at, end))?.[1]);
        if (end === -1 || !Number.isInteger(length)) break;
        blobs.push(all.subarray(end + 1, end + 1 + length));
        at = end + length + 2;
      }
      if (blobs.length === ids.length) resolve(blobs);
      else reject(new UnavailableError('repository_unreachable', 'an object of the base commit cannot be read'));
    });
  });

const has = async (run: RunGit, commit: string): Promise<boolean> =>
  (await run(['--no-replace-objects', 'cat-file', '-e', `${commit}^{commit}`])).code === 0;

/**
 * Copies the files into `target`, which is new afterwards: whole or not at all, files read-only. What is not in the commit
 * is not copied. Rejects with a BeeuniError when the commit cannot be had or is too large.
 */
export const copyBaseFiles = async (run: RunGit, request: BaseFilesRequest, log: Logger): Promise<void> => {
  const { commit, target, signal } = request;
  // A workspace that was kept may be older than the commit that the session is configured by.
  if (!(await has(run, commit))) await run(['fetch', '--quiet', 'origin'], { timeoutMs: FETCH_TIMEOUT_MS, signal });
  if (!(await has(run, commit))) {
    throw new UnavailableError('repository_unreachable', `the base commit ${commit} is not in the repository`);
  }
  const listing = await run(
    ['--no-replace-objects', 'ls-tree', '-r', '-z', '--full-tree', commit, '--', ...request.paths],
    { signal },
  );
  const entries = entriesOf(listing.stdout);
  if (listing.code !== 0 || listing.stdout.length > LIST_LIMIT || entries.length > MAX_FILES) {
    throw new LimitError('repository_too_large', `the configuration has more than ${MAX_FILES} files`);
  }
  const ids = entries.map(({ id }) => id);
  const blobs = ids.length === 0 ? [] : await readBlobs(request, ids);
  const next = `${target}.next`;
  rmSync(next, { recursive: true, force: true });
  mkdirSync(next, { recursive: true });
  entries.forEach(({ path, executable }, at) => {
    const file = join(next, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, blobs[at] ?? '');
    chmodSync(file, executable ? 0o555 : 0o444);
  });
  rmSync(target, { recursive: true, force: true });
  renameSync(next, target);
  log.info('the configuration of the base commit is copied', { commit, files: entries.length });
};
