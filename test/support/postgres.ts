// A real Postgres for tests: one server per process (or DATABASE_URL), a database per test file copied from a template.
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import pg from 'pg';
import { systemClock } from '#base/clock.ts';
import { createEmbeddedPostgres, type EmbeddedPostgres } from '#controlplane/store/embedded.ts';
import { migrate } from '#controlplane/store/migrate.ts';
import { createPool, POOL_DEFAULTS, type Pool } from '#controlplane/store/pool.ts';

const PREFIX = 'beeuni-test-pg-';
const TEMPLATE_LOCK = 7_271_838_402;

/** A running server. `databaseUrl` names its maintenance database; `embedded` is undefined for DATABASE_URL. */
export type TestServer = Readonly<{ databaseUrl: string; embedded: EmbeddedPostgres | undefined }>;

let server: Promise<TestServer & { directory: string | undefined }> | undefined;

/** Databases that are not closed yet. This hook was registered first, so it runs before those of the test file. */
const open = new Set<() => Promise<void>>();

after(async () => {
  await Promise.all([...open].map((close) => close()));
  const started = await server?.catch(() => undefined);
  await started?.embedded?.stop();
  if (started?.directory !== undefined) await rm(started.directory, { recursive: true, force: true });
});

/** Ends servers whose test process was killed, and removes their folders. */
const sweepOrphans = (): void => {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(PREFIX))) {
    const owner = name.slice(PREFIX.length).split('-')[0] ?? '';
    if (existsSync(`/proc/${owner}`)) continue;
    const directory = join(tmpdir(), name);
    for (const pid of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
      try {
        if (readlinkSync(`/proc/${pid}/cwd`) === join(directory, 'data')) process.kill(Number(pid), 'SIGQUIT');
      } catch {
        // Not ours to read, or gone.
      }
    }
    rmSync(directory, { recursive: true, force: true });
  }
};

/** The server of this process, started once and stopped after its last test. */
export const startPostgres = (): Promise<TestServer> => {
  server ??= (async () => {
    const external = process.env['DATABASE_URL'];
    if (external !== undefined && external !== '') {
      return { databaseUrl: external, embedded: undefined, directory: undefined };
    }
    sweepOrphans();
    const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
    const settings = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'shared_buffers=64MB'];
    const embedded = createEmbeddedPostgres({ directory, settings, log: () => undefined, clock: systemClock });
    return { databaseUrl: await embedded.start(), embedded, directory };
  })();
  return server;
};

const withDatabase = (url: string, name: string): string => {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.toString();
};

const inMaintenance = async (url: string, work: (client: pg.Client) => Promise<void>): Promise<void> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
};

/** An empty database of the server, without any table. `drop` also ends its connections. */
export const emptyDatabase = async (): Promise<Readonly<{ databaseUrl: string; drop: () => Promise<void> }>> => {
  const { databaseUrl } = await startPostgres();
  const name = `test_${randomBytes(6).toString('hex')}`;
  await inMaintenance(databaseUrl, async (client) => void (await client.query(`create database ${name}`)));
  return { databaseUrl: withDatabase(databaseUrl, name), drop: () => dropDatabase(databaseUrl, name) };
};

const dropDatabase = (url: string, name: string): Promise<void> =>
  inMaintenance(url, async (client) => void (await client.query(`drop database if exists ${name} with (force)`)));

/** A migrated database of its own with a pool. */
export type TestDatabase = Readonly<{ databaseUrl: string; pool: Pool; close: () => Promise<void> }>;

/** Copies the template, which is migrated once per process. Closed after the last test, or by `close`. */
export const freshDatabase = async (options: { poolSize?: number } = {}): Promise<TestDatabase> => {
  const { databaseUrl } = await startPostgres();
  const template = `template_${process.pid}`;
  const name = `test_${randomBytes(6).toString('hex')}`;
  await inMaintenance(databaseUrl, async (client) => {
    await client.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    const known = await client.query('select 1 from pg_database where datname = $1', [template]);
    if (known.rowCount === 0) {
      await client.query(`create database ${template}_new`);
      await migrate(withDatabase(databaseUrl, `${template}_new`));
      await client.query(`alter database ${template}_new rename to ${template}`);
    }
    await client.query(`create database ${name} template ${template}`);
  });
  const own = withDatabase(databaseUrl, name);
  const pool = createPool({
    ...POOL_DEFAULTS,
    databaseUrl: own,
    size: options.poolSize ?? 8,
    applicationName: 'beeuni-test',
    onIdleError: () => undefined,
  });
  const close = async () => {
    if (!open.delete(close)) return;
    await pool.close();
    await dropDatabase(databaseUrl, name);
  };
  open.add(close);
  return { databaseUrl: own, pool, close };
};

/** A server of its own, for tests that kill it. `directory` and its files vanish with `stop`. */
export const ownServer = async (
  settings: readonly string[] = [],
): Promise<
  Readonly<{ databaseUrl: string; embedded: EmbeddedPostgres; directory: string; stop: () => Promise<void> }>
> => {
  sweepOrphans();
  const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const embedded = createEmbeddedPostgres({ directory, settings, log: () => undefined, clock: systemClock });
  const databaseUrl = await embedded.start();
  return {
    databaseUrl,
    embedded,
    directory,
    stop: async () => {
      await embedded.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
};
