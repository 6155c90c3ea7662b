// A git server over smart HTTP for the demo and the tests: node:http in front of git's own http-backend.
// `node examples/demo/git-server.ts --root DIR [--port 3000] [--host 0.0.0.0] [--seed FOLDER --name sample.git]
// [--create-on-push]`.
// It must not know Beeuni. It has no users unless it is given one; keep it inside the cluster.
import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { createGunzip } from 'node:zlib';

const run = promisify(execFile);

/** One user who may do everything; without one nobody is asked. */
export type GitUser = Readonly<{ username: string; password: string }>;

/** What the server is started with. `root`: folder of bare repositories, `<name>.git`. */
export type GitServerOptions = Readonly<{
  root: string;
  port?: number | undefined;
  host?: string | undefined;
  user?: GitUser | undefined;
  /** Whether a push to a name that is not there makes the repository. */
  createOnPush?: boolean | undefined;
  /** Sees each request; an answer of `false` means that the server sends nothing, a number is the status to fail with. */
  onRequest?: ((request: IncomingMessage) => false | number | undefined) | undefined;
}>;

/** A running server; `url` has no trailing slash. */
export type GitServer = Readonly<{ url: string; port: number; close: () => Promise<void> }>;

const ENVIRONMENT = (home: string): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
  HOME: home,
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Sample',
  GIT_AUTHOR_EMAIL: 'sample@example.com',
  GIT_COMMITTER_NAME: 'Sample',
  GIT_COMMITTER_EMAIL: 'sample@example.com',
});

/** Runs git in a folder with an environment of its own and gives back its output. Rejects with git's words. */
export const git = async (folder: string, ...args: readonly string[]): Promise<string> => {
  const config = ['-c', 'init.defaultBranch=main', '-c', 'protocol.file.allow=always', '-c', 'safe.directory=*'];
  const { stdout } = await run('git', [...config, ...args], {
    cwd: folder,
    env: ENVIRONMENT(folder),
    maxBuffer: 1 << 26,
  });
  return stdout.trim();
};

/** A repository whose default branch nobody pushed takes the first branch that came as its default. */
const FOLLOW_FIRST_BRANCH = `#!/bin/sh
git rev-parse --quiet --verify HEAD >/dev/null && exit 0
git for-each-ref --count=1 --format='%(refname)' refs/heads | xargs -r git symbolic-ref HEAD
`;

/** Makes an empty bare repository `<root>/<name>` that takes pushes; does nothing when it is there. Gives back its folder. */
export const createRepository = async (root: string, name: string): Promise<string> => {
  const path = join(root, name);
  if ((await stat(join(path, 'HEAD')).catch(() => undefined)) !== undefined) return path;
  await mkdir(path, { recursive: true });
  await git(path, 'init', '--bare', '--quiet', '--initial-branch=main');
  await git(path, 'config', 'http.receivepack', 'true');
  await git(path, 'config', 'receive.denyDeleteCurrent', 'ignore');
  await mkdir(join(path, 'hooks'), { recursive: true });
  await writeFile(join(path, 'hooks', 'post-receive'), FOLLOW_FIRST_BRANCH, { mode: 0o755 });
  return path;
};

/** Makes a repository whose first commit is a copy of a folder; leaves one that is there as it is. */
export const seedRepository = async (root: string, name: string, folder: string): Promise<string> => {
  const path = join(root, name);
  if ((await stat(join(path, 'HEAD')).catch(() => undefined)) !== undefined) return path;
  await createRepository(root, name);
  const work = await mkdtemp(join(tmpdir(), 'git-seed-'));
  try {
    await cp(folder, work, { recursive: true });
    await git(work, 'init', '--quiet');
    await git(work, 'add', '--all');
    await git(work, 'commit', '--quiet', '--message', 'Start the sample project');
    await git(work, 'push', '--quiet', path, 'HEAD:refs/heads/main');
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return path;
};

const isAllowed = (request: IncomingMessage, user: GitUser | undefined): boolean =>
  user === undefined ||
  request.headers.authorization === `Basic ${Buffer.from(`${user.username}:${user.password}`).toString('base64')}`;

/** Plays one request through http-backend, a CGI program: headers, an empty line, the body. */
const serve = (root: string, request: IncomingMessage, response: ServerResponse): void => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const child = spawn('git', ['-c', 'safe.directory=*', 'http-backend'], {
    env: {
      ...ENVIRONMENT(root),
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method ?? 'GET',
      PATH_INFO: decodeURIComponent(url.pathname),
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_USER: 'sample',
      REMOTE_ADDR: '127.0.0.1',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const body = request.headers['content-encoding'] === 'gzip' ? request.pipe(createGunzip()) : request;
  child.stdin.on('error', () => undefined);
  body.on('error', () => child.kill());
  body.pipe(child.stdin);
  response.on('close', () => child.kill());
  let head: Buffer | undefined = Buffer.alloc(0);
  child.stdout.on('data', (part: Buffer) => {
    if (head === undefined) {
      if (!response.write(part)) {
        child.stdout.pause();
        response.once('drain', () => child.stdout.resume());
      }
      return;
    }
    head = Buffer.concat([head, part]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    const headers: Record<string, string> = {};
    for (const line of head.subarray(0, end).toString('latin1').split('\r\n')) {
      const colon = line.indexOf(':');
      if (colon > 0) headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const { status = '200', ...others } = headers;
    response.writeHead(Number.parseInt(status, 10), others);
    const rest = head.subarray(end + 4);
    head = undefined;
    if (rest.length > 0) response.write(rest);
  });
  child.on('close', () => {
    if (!response.headersSent) response.writeHead(500);
    response.end();
  });
};

/** Name of the repository that a push begins with, one plain path segment; undefined for every other request. */
const pushedName = (request: IncomingMessage): string | undefined =>
  /^\/([a-z0-9][a-z0-9._-]{0,99}\.git)\/info\/refs\?service=git-receive-pack$/.exec(request.url ?? '')?.[1];

/** Starts the server; port 0, the default, takes a free one. */
export const startGitServer = async (options: GitServerOptions): Promise<GitServer> => {
  const server = createServer((request, response) => {
    const told = options.onRequest?.(request);
    if (told === false) return;
    if (typeof told === 'number') {
      response.writeHead(told, told >= 300 && told < 400 ? { location: 'http://127.0.0.1:1/elsewhere' } : {}).end();
      return;
    }
    if (request.url === '/healthz') {
      response.writeHead(200).end('ok');
      return;
    }
    if (!isAllowed(request, options.user)) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    const missing = options.createOnPush === true ? pushedName(request) : undefined;
    if (missing === undefined) serve(options.root, request, response);
    else
      createRepository(options.root, missing).then(
        () => serve(options.root, request, response),
        () => response.writeHead(500).end(),
      );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      root: { type: 'string' },
      port: { type: 'string', default: '3000' },
      host: { type: 'string', default: '127.0.0.1' },
      seed: { type: 'string' },
      name: { type: 'string', default: 'sample.git' },
      'create-on-push': { type: 'boolean', default: false },
    },
  });
  const { root, seed } = values;
  if (root === undefined) throw new Error('--root names the folder of the repositories');
  await mkdir(root, { recursive: true });
  if (seed !== undefined) await seedRepository(root, values.name, seed);
  const server = await startGitServer({
    root,
    port: Number(values.port),
    host: values.host,
    createOnPush: values['create-on-push'],
  });
  process.on('SIGTERM', () => void server.close());
  process.on('SIGINT', () => void server.close());
  console.log(`git server on http://${values.host}:${server.port}/`);
}
