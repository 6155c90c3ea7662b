// A whole control plane as its own process, for one test file. Must not know any single test.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './until.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'controlplane', 'main.ts');

/** Listeners of the process. */
export type ControlPlaneListener = 'public' | 'sandbox' | 'internal' | 'metrics';

/** A process that was started. */
export type ControlPlaneProcess = Readonly<{
  child: ChildProcess;
  /** Everything of it on disk; an embedded Postgres has `pg/`. */
  folder: string;
  /** Everything that it printed, line by line. */
  lines: readonly string[];
  /** Base URL of a listener, once it is open. */
  url: (listener: ControlPlaneListener) => Promise<string>;
  /** Resolves when /readyz answers 200. */
  ready: () => Promise<void>;
  /** Resolves with exit code or signal. */
  exited: Promise<number | NodeJS.Signals | null>;
  /** Ends the process and removes its folder. */
  stop: () => Promise<void>;
}>;

/** What a process is started with; `environment` wins over the defaults. A directory gives an embedded Postgres. */
export type ControlPlaneOptions = Readonly<{
  kubeconfigPath: string;
  databaseUrl?: string | undefined;
  environment?: Readonly<Record<string, string>>;
}>;

/** Starts `controlplane/main.ts` on free ports of the loopback, with a folder of its own. */
export const startControlPlane = async (options: ControlPlaneOptions): Promise<ControlPlaneProcess> => {
  // Short: the socket of the embedded Postgres lies in it, and whoever runs Postgres must reach it.
  const folder = await mkdtemp(join(tmpdir(), 'beeuni-cp-'));
  await chmod(folder, 0o755);
  const keyFile = join(folder, 'key');
  await writeFile(keyFile, randomBytes(32).toString('base64'), { mode: 0o600 });
  const database =
    options.databaseUrl === undefined
      ? { BEEUNI_DATABASE_DIRECTORY: join(folder, 'pg') }
      : { DATABASE_URL: options.databaseUrl };
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH: process.env['PATH'] ?? '/usr/bin:/bin',
      HOME: folder,
      BEEUNI_LISTEN_HOST: '127.0.0.1',
      BEEUNI_PUBLIC_PORT: '0',
      BEEUNI_SANDBOX_PORT: '0',
      BEEUNI_INTERNAL_PORT: '0',
      BEEUNI_METRICS_PORT: '0',
      BEEUNI_KUBECONFIG: options.kubeconfigPath,
      BEEUNI_ENCRYPTION_KEY_FILE: keyFile,
      BEEUNI_GIT_MIRROR_DIRECTORY: join(folder, 'mirrors'),
      BEEUNI_SHUTDOWN_GRACE_SECONDS: '2',
      ...database,
      ...options.environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      const parts = (rest + text).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts);
    });
    stream.on('end', () => {
      if (rest !== '') lines.push(rest);
    });
  }
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
  const describe = (): string => lines.slice(-20).join('\n');
  const portOf = (listener: ControlPlaneListener): number | undefined => {
    for (const line of lines) {
      if (!line.includes('"listening"')) continue;
      const record = JSON.parse(line) as { listener?: string; port?: number };
      if (record.listener === listener) return record.port;
    }
    return undefined;
  };
  const url = async (listener: ControlPlaneListener): Promise<string> => {
    const port = await until(
      `the listener ${listener} is open`,
      () => {
        if (child.exitCode !== null) throw new Error(`the control plane ended with ${child.exitCode}`);
        return portOf(listener);
      },
      { deadlineMs: 90_000, describe },
    );
    return `http://127.0.0.1:${port}`;
  };
  return {
    child,
    folder,
    lines,
    url,
    exited,
    ready: async () => {
      const metrics = await url('metrics');
      await until('the control plane is ready', async () => (await fetch(`${metrics}/readyz`)).status === 200, {
        deadlineMs: 90_000,
        describe,
      });
    },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 40_000);
      await exited;
      clearTimeout(late);
      await rm(folder, { recursive: true, force: true });
    },
  };
};
