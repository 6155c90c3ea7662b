// Runs the real daemon with folders of its own, as a pod would, against a given control plane: as a process, or by a launch
// that puts it elsewhere. Must not know what is tested.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HealthDocument } from '#schema/wire/health.ts';
import { opencodePath } from './opencode.ts';
import { environmentOf, processIds } from './processes.ts';
import { until } from './until.ts';

const DAEMON = fileURLToPath(new URL('../../sandbox-image/daemon/', import.meta.url));

/** What the image sets beside its entry point. */
const IMAGE_ENVIRONMENT = { MALLOC_ARENA_MAX: '2' };

/** Folders of one sandbox; they outlive its daemons, as a volume does. */
export type SandboxFolders = Readonly<{
  root: string;
  workspace: string;
  data: string;
  config: string;
  home: string;
  temporary: string;
  tokenFile: string;
  remove: () => void;
}>;

/** New folders and a token file with the given content. */
export const makeSandboxFolders = (token: string): SandboxFolders => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-sandbox-'));
  const folder = (name: string): string => {
    mkdirSync(join(root, name));
    return join(root, name);
  };
  const tokenFile = join(folder('token'), 'token');
  writeFileSync(tokenFile, token);
  return {
    root,
    workspace: folder('workspace'),
    data: folder('data'),
    config: folder('config'),
    home: folder('home'),
    temporary: folder('tmp'),
    tokenFile,
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
};

/** The same folders as the daemon sees them: its own paths. */
export type InnerFolders = Readonly<
  Pick<SandboxFolders, 'workspace' | 'data' | 'config' | 'home' | 'temporary' | 'tokenFile'>
>;

/** A started daemon as its launch sees it. `signal` reaches the daemon itself, whatever is between. */
export type Launched = Readonly<{ child: ChildProcess; signal: (name: NodeJS.Signals) => void }>;

/** How a daemon is started. `inner`: paths that the daemon gets; `start` gets its whole environment. */
export type Launch = Readonly<{
  inner: (folders: SandboxFolders) => InnerFolders;
  start: (folders: SandboxFolders, environment: Readonly<Record<string, string>>) => Launched;
}>;

/** As a process of this machine, started as the image does it; from the sources when no program is given. */
export const asProcess = (main = `${DAEMON}main.ts`): Launch => ({
  inner: (folders) => folders,
  start: (_folders, environment) => {
    const program = opencodePath();
    const path = [program ?? '', process.execPath]
      .filter(Boolean)
      .map(dirname)
      .concat(process.env['PATH'] ?? '');
    const child = spawn('sh', [`${DAEMON}start.sh`, main], {
      env: { PATH: path.join(':'), ...IMAGE_ENVIRONMENT, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return {
      child,
      signal: (name) => {
        child.kill(name);
      },
    };
  },
});

/** Processes that were started with the home of these folders: harness and tools, also those that a dead daemon left. */
const processesOf = (folders: SandboxFolders): readonly number[] =>
  processIds().filter((pid) => environmentOf(pid).includes(`HOME=${folders.home}\0`));

/** A running daemon. */
export type DaemonProcess = Readonly<{
  pid: number;
  /** Base URL of port 8000. */
  url: () => Promise<string>;
  health: () => Promise<HealthDocument>;
  /** Calls a route of port 8000. */
  call: (
    method: string,
    path: string,
    credential?: string,
    body?: unknown,
  ) => Promise<Readonly<{ status: number; body: unknown }>>;
  output: () => string;
  /** Closes the reading ends of its output, as when whoever collects the log is gone. */
  closeOutput: () => void;
  signal: (name: NodeJS.Signals) => void;
  exited: Promise<Readonly<{ code: number | null; signal: string | null }>>;
  /** Kills it if it still runs, and what its harness left. */
  cleanUp: () => Promise<void>;
}>;

/** Starts the daemon in the folders. `environment` overrides single names; undefined leaves one out. */
export const startDaemon = (
  folders: SandboxFolders,
  controlPlaneUrl: string,
  environment: Readonly<Record<string, string | undefined>> = {},
  launch: Launch = asProcess(),
): DaemonProcess => {
  const inner = launch.inner(folders);
  const all: Record<string, string | undefined> = {
    HOME: inner.home,
    TMPDIR: inner.temporary,
    BEEUNI_CONTROL_PLANE_URL: controlPlaneUrl,
    BEEUNI_TOKEN_FILE: inner.tokenFile,
    BEEUNI_PORT: '0',
    BEEUNI_HARNESS: 'opencode',
    BEEUNI_WORKSPACE_DIR: inner.workspace,
    BEEUNI_DATA_DIR: inner.data,
    BEEUNI_CONFIG_DIR: inner.config,
    BEEUNI_DRAIN_SECONDS: '5',
    BEEUNI_LOG_LEVEL: 'debug',
    ...environment,
  };
  const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const { child, signal } = launch.start(folders, Object.fromEntries(given));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exited = new Promise<Readonly<{ code: number | null; signal: string | null }>>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const url = (): Promise<string> =>
    until(
      'the daemon listens',
      () => {
        const port = /"port":(\d+),"version":"[^"]*","message":"listening"/.exec(output)?.[1];
        return port === undefined ? undefined : `http://127.0.0.1:${port}`;
      },
      { describe: () => output.slice(-2_000) },
    );
  const call: DaemonProcess['call'] = async (method, path, credential, body) => {
    const response = await fetch((await url()) + path, {
      method,
      headers: {
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  return {
    pid: child.pid ?? 0,
    url,
    health: async () => (await call('GET', '/beeuni/health')).body as HealthDocument,
    call,
    output: () => output,
    closeOutput: () => {
      child.stdout?.destroy();
      child.stderr?.destroy();
    },
    signal,
    exited,
    cleanUp: async () => {
      signal('SIGKILL');
      child.kill('SIGKILL');
      await exited;
      for (const pid of processesOf(folders)) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It ended meanwhile.
        }
      }
    },
  };
};
