// A real Postgres for tests: the server of DATABASE_URL (that of the tier, see tools/test.ts), else one per process; a database
// per test file, copied from a template.
import { createHash, randomBytes } from 'node:crypto';
import { after } from 'node:test';
import pg from 'pg';
import { loadMigrations, migrate } from '#controlplane/store/migrate.ts';
import { createPool, POOL_DEFAULTS, type Pool } from '#controlplane/store/pool.ts';
import { ownServer, THROWAWAY } from './postgres-server.ts';

const TEMPLATE_LOCK = 7_271_838_402;

/** The server that this process uses. `databaseUrl` names its maintenance database. */
type SharedServer = Readonly<{ databaseUrl: string; stop?: () => Promise<void> }>;

let server: Promise<SharedServer> | undefined;

/** Databases that are not closed yet. This hook was registered first, so it runs before those of the test file. */
const open = new Set<() => Promise<void>>();

after(async () => {
  await Promise.all([...open].map((close) => close()));
  await (await server?.catch(() => undefined))?.stop?.();
});

/** Known once per process: that of the tier, or one of its own that is stopped after its last test. */
const sharedServer = (): Promise<SharedServer> => {
  const external = process.env['DATABASE_URL'] ?? '';
  server ??= external === '' ? ownServer(THROWAWAY) : Promise.resolve({ databaseUrl: external });
  return server;
};

/** Of the migrations that are read now, so that a server which is kept never gives an old shape. */
const templateName = async (): Promise<string> => {
  const hash = createHash('sha256');
  for (const { name, version, sql } of await loadMigrations()) hash.update(`${version} ${name}\n${sql}\n`);
  return `template_${hash.digest('hex').slice(0, 16)}`;
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
  const { databaseUrl } = await sharedServer();
  const name = `test_${randomBytes(6).toString('hex')}`;
  await inMaintenance(databaseUrl, async (client) => void (await client.query(`create database ${name}`)));
  return { databaseUrl: withDatabase(databaseUrl, name), drop: () => dropDatabase(databaseUrl, name) };
};

const dropDatabase = (url: string, name: string): Promise<void> =>
  inMaintenance(url, async (client) => void (await client.query(`drop database if exists ${name} with (force)`)));

/** A migrated database of its own with a pool. */
export type TestDatabase = Readonly<{ databaseUrl: string; pool: Pool; close: () => Promise<void> }>;

/** Copies the template, which is migrated once per server. Closed after the last test, or by `close`. */
export const freshDatabase = async (options: { poolSize?: number } = {}): Promise<TestDatabase> => {
  const { databaseUrl } = await sharedServer();
  const template = await templateName();
  const name = `test_${randomBytes(6).toString('hex')}`;
  await inMaintenance(databaseUrl, async (client) => {
    await client.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    const known = await client.query('select 1 from pg_database where datname = $1', [template]);
    if (known.rowCount === 0) {
      await client.query(`drop database if exists ${template}_new`);
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
