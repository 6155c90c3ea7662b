// A bare repository behind the real `git http-backend`, and a way to make one from files. Must not know Beeuni.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const IDENTITY = {
  GIT_AUTHOR_NAME: 'Seed',
  GIT_AUTHOR_EMAIL: 'seed@example.com',
  GIT_COMMITTER_NAME: 'Seed',
  GIT_COMMITTER_EMAIL: 'seed@example.com',
  GIT_CONFIG_GLOBAL: '/dev/null',
};

/** A repository that can be asked and served. */
export type GitBackend = Readonly<{
  directory: string;
  /** The newest commit of `main` when it was made. */
  baseCommit: string;
  /** Runs git in the bare repository and gives back its output. */
  git: (...args: readonly string[]) => string;
  /** The commit of a branch; undefined when there is none. */
  branch: (name: string) => string | undefined;
  /** Serves one call; `path` is what follows the repository's URL, with its query. */
  serve: (request: IncomingMessage, response: ServerResponse, path: string) => Promise<void>;
  remove: () => void;
}>;

const git = (cwd: string, ...args: readonly string[]): string =>
  execFileSync('git', args, {
    cwd,
    env: { ...process.env, ...IDENTITY },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();

/** Makes a bare repository whose branch `main` holds the files: path to content. */
export const makeGitBackend = (files: Readonly<Record<string, string>>): GitBackend => {
  const directory = mkdtempSync(join(tmpdir(), 'beeuni-git-'));
  const seed = join(directory, 'seed');
  const bare = join(directory, 'repo.git');
  mkdirSync(seed);
  git(seed, 'init', '--quiet', '--initial-branch=main');
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(seed, path)), { recursive: true });
    writeFileSync(join(seed, path), content);
  }
  git(seed, 'add', '--all', '--force');
  git(seed, 'commit', '--quiet', '--allow-empty', '--message=seed');
  git(directory, 'clone', '--quiet', '--bare', seed, bare);
  git(bare, 'config', 'http.receivepack', 'true');
  return {
    directory: bare,
    baseCommit: git(bare, 'rev-parse', 'main'),
    git: (...args) => git(bare, ...args),
    branch: (name) => {
      try {
        return git(bare, 'rev-parse', '--quiet', '--verify', `refs/heads/${name}`);
      } catch {
        return undefined;
      }
    },
    serve: (request, response, path) => serveBackend(bare, request, response, path),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
};

const serveBackend = (bare: string, request: IncomingMessage, response: ServerResponse, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const url = new URL(path, 'http://localhost');
    const child = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: bare,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'safe.directory',
        GIT_CONFIG_VALUE_0: '*',
        REQUEST_METHOD: request.method ?? 'GET',
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        ...(request.headers['content-encoding'] === undefined
          ? {}
          : { HTTP_CONTENT_ENCODING: request.headers['content-encoding'] }),
        ...(typeof request.headers['git-protocol'] === 'string'
          ? { GIT_PROTOCOL: request.headers['git-protocol'] }
          : {}),
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    child.once('error', reject);
    child.stdin.on('error', () => {});
    request.pipe(child.stdin);
    let head = Buffer.alloc(0);
    let isBody = false;
    child.stdout.on('data', (chunk: Buffer) => {
      if (isBody) {
        response.write(chunk);
        return;
      }
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return;
      const headers: Record<string, string> = {};
      let status = 200;
      for (const line of head.toString('utf8', 0, end).split('\r\n')) {
        const [name, value] = [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()];
        if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10);
        else headers[name.toLowerCase()] = value;
      }
      response.writeHead(status, headers);
      isBody = true;
      response.write(head.subarray(end + 4));
    });
    child.once('close', () => {
      if (!isBody) response.writeHead(500);
      response.end();
      resolve();
    });
  });
