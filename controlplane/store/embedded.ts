// A real Postgres as a child process, for a single machine and for tests: made once on a volume, started again after
// any end, reached over a Unix socket with a random password. Must not know any table. Linux only.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { type Clock, sleep } from '#base/clock.ts';
import { findPostgresUser, type PostgresBinaries, type PostgresUser, preparePostgres } from './embedded-binaries.ts';

/** Where and how to run it. */
export type EmbeddedOptions = Readonly<{
  /** Folder on a volume; holds `data/`, `run/` (the socket, hence at most 90 characters), `lib/` and `password`. */
  directory: string;
  /** More `name=value` settings of the server, for example `fsync=off` in tests. */
  settings?: readonly string[];
  /** Every line that the server prints. */
  log: (line: string) => void;
  clock: Clock;
}>;

/** The server and its life. */
export type EmbeddedPostgres = Readonly<{
  /** Starts it, or takes the data over from a server that outlived its parent. Gives back a `databaseUrl`. */
  start: () => Promise<string>;
  /** Ends it with a clean shutdown. */
  stop: () => Promise<void>;
  /** Process id of the postmaster while it runs. */
  pid: () => number | undefined;
}>;

const ROLE = 'beeuni';
/** Longest start, crash recovery included; longest shutdown. */
const START_TIMEOUT_MS = 300_000;
const STOP_TIMEOUT_MS = 20_000;
const POLL_MS = 20;
const RESTART_DELAY_MS = 500;

const SETTINGS = [
  "listen_addresses=''",
  'unix_socket_permissions=0700',
  'max_connections=200',
  'wal_level=minimal',
  'max_wal_senders=0',
  'max_parallel_workers_per_gather=0',
  'jit=off',
  'io_method=sync',
  'logging_collector=off',
  'log_timezone=UTC',
  'timezone=UTC',
] as const;

/** Process ids whose working directory is `directory`: all processes of a server stand in its data directory. */
const processesIn = async (directory: string): Promise<number[]> => {
  const names = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) =>
      (await readlink(`/proc/${name}/cwd`).catch(() => '')) === directory ? [Number(name)] : [],
    ),
  );
  return found.flat();
};

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch {
    // It ended meanwhile.
  }
};

const isFile = (path: string): Promise<boolean> =>
  readFile(path).then(
    () => true,
    () => false,
  );

/** Creates nothing until `start()`. */
export const createEmbeddedPostgres = (options: EmbeddedOptions): EmbeddedPostgres => {
  const { directory, clock } = options;
  const data = join(directory, 'data');
  const run = join(directory, 'run');
  const lockFile = join(data, 'postmaster.pid');
  let child: ChildProcess | undefined;
  let stopping = false;
  let supervision: Promise<void> | undefined;

  const until = async (isDone: () => Promise<boolean>, timeoutMs: number): Promise<boolean> => {
    const end = clock.monotonicMs() + timeoutMs;
    // Timers of the clock do not keep the process alive, and before the server listens nothing else does.
    const hold = setInterval(() => undefined, timeoutMs);
    try {
      while (!(await isDone())) {
        if (clock.monotonicMs() > end) return false;
        await sleep(clock, POLL_MS);
      }
      return true;
    } finally {
      clearInterval(hold);
    }
  };

  const runToEnd = (user: PostgresUser, binaries: PostgresBinaries, program: string, args: readonly string[]) =>
    new Promise<void>((resolve, reject) => {
      const env = { ...binaries.environment };
      const made = spawn(program, args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'], ...user.switchUser });
      let output = '';
      const keep = (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-4_000);
      };
      made.stdout.on('data', keep);
      made.stderr.on('data', keep);
      made.on('error', reject);
      made.on('close', (code) =>
        code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}: ${output}`)),
      );
    });

  const own = async (path: string, user: PostgresUser): Promise<void> => {
    if (user.switchUser !== undefined) await chown(path, user.switchUser.uid, user.switchUser.gid);
  };

  const passwordOf = async (user: PostgresUser): Promise<string> => {
    const path = join(directory, 'password');
    const known = await readFile(path, 'utf8').catch(() => '');
    if (known !== '') return known.trim();
    const made = randomBytes(24).toString('base64url');
    await writeFile(`${path}.new`, `${made}\n`, { mode: 0o600 });
    await own(`${path}.new`, user);
    await rename(`${path}.new`, path);
    return made;
  };

  /** Ends a server that outlived its parent, then removes a lock that names a process which is not a server. */
  const takeOver = async (): Promise<void> => {
    const postmaster = Number((await readFile(lockFile, 'utf8').catch(() => '')).split('\n')[0]);
    const living = await processesIn(data);
    if (living.includes(postmaster)) signal(postmaster, 'SIGINT');
    const isEmpty = async () => (await processesIn(data)).length === 0;
    if (!(await until(isEmpty, STOP_TIMEOUT_MS / 2))) {
      if (living.includes(postmaster)) signal(postmaster, 'SIGQUIT');
      if (!(await until(isEmpty, STOP_TIMEOUT_MS / 2)))
        throw new Error(`another Postgres uses ${data} and does not end`);
    }
    await rm(lockFile, { force: true });
  };

  const initialize = async (user: PostgresUser, binaries: PostgresBinaries): Promise<void> => {
    if (await isFile(join(data, 'PG_VERSION'))) return;
    const fresh = join(directory, 'data.new');
    await rm(fresh, { recursive: true, force: true });
    await runToEnd(user, binaries, binaries.initdb, [
      `--pgdata=${fresh}`,
      `--username=${ROLE}`,
      '--auth=scram-sha-256',
      `--pwfile=${join(directory, 'password')}`,
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
    ]);
    await rename(fresh, data);
  };

  const printLines = (stream: NodeJS.ReadableStream): void => {
    let rest = '';
    stream.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = (lines.pop() ?? '').slice(-2_000);
      for (const line of lines) options.log(line.slice(0, 2_000));
    });
  };

  const launch = (user: PostgresUser, binaries: PostgresBinaries): ChildProcess => {
    const settings = [...SETTINGS, `unix_socket_directories=${run}`, ...(options.settings ?? [])];
    const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting.replaceAll("''", '')])];
    const env = { ...binaries.environment };
    const made = spawn(binaries.postgres, args, {
      cwd: directory,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
      ...user.switchUser,
    });
    printLines(made.stderr);
    made.on('error', (error) => options.log(`postgres: ${error.message}`));
    return made;
  };

  const hasEnded = (made: ChildProcess): boolean => made.exitCode !== null || made.signalCode !== null;

  const connectOnce = async (databaseUrl: string, work: (client: pg.Client) => Promise<unknown>): Promise<boolean> => {
    const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await work(client);
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => undefined);
    }
  };

  const startOnce = async (user: PostgresUser, binaries: PostgresBinaries, url: (database: string) => string) => {
    await takeOver();
    await initialize(user, binaries);
    await chmod(data, 0o700);
    const made = launch(user, binaries);
    child = made;
    const exists = async (client: pg.Client) => {
      const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [ROLE]);
      if (rowCount === 0) await client.query(`create database ${ROLE}`);
    };
    let ready = false;
    await until(async () => {
      ready = await connectOnce(url('postgres'), exists);
      return ready || hasEnded(made) || stopping;
    }, START_TIMEOUT_MS);
    if (!ready) {
      signal(made.pid ?? 0, 'SIGQUIT');
      throw new Error('the embedded Postgres did not start; its output is in the log');
    }
    return made;
  };

  /** While not asked to stop, a server that ended is started again: its data survive any end. */
  const supervise = async (first: ChildProcess, startAgain: () => Promise<ChildProcess>): Promise<void> => {
    let current: ChildProcess | undefined = first;
    while (!stopping) {
      const watched: ChildProcess | undefined = current;
      if (watched !== undefined && !hasEnded(watched)) await new Promise((resolve) => watched.once('exit', resolve));
      if (stopping) return;
      options.log('postgres ended by itself and is started again');
      await sleep(clock, RESTART_DELAY_MS);
      if (stopping) return;
      current = await startAgain().catch((error: Error) => {
        options.log(error.message);
        return undefined;
      });
    }
  };

  return {
    start: async () => {
      const user = await findPostgresUser();
      const binaries = await preparePostgres(directory, user);
      await mkdir(run, { recursive: true, mode: 0o700 });
      await own(run, user);
      const password = await passwordOf(user);
      const url = (database: string) =>
        `postgres://${ROLE}:${password}@localhost/${database}?host=${encodeURIComponent(run)}`;
      const startAgain = () => startOnce(user, binaries, url);
      const first = await startAgain();
      supervision = supervise(first, startAgain);
      return url(ROLE);
    },
    stop: async () => {
      stopping = true;
      const running = child;
      if (running === undefined) return;
      const isGone = async () => hasEnded(running) && (await processesIn(data)).length === 0;
      if (!hasEnded(running)) running.kill('SIGINT');
      if (!(await until(isGone, STOP_TIMEOUT_MS))) running.kill('SIGQUIT');
      await until(isGone, STOP_TIMEOUT_MS);
      await supervision;
    },
    pid: () => (child !== undefined && !hasEnded(child) ? child.pid : undefined),
  };
};
