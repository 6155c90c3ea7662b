// Brings a database to the shape that this version needs: numbered SQL files, forward only, one advisory lock.
// Must not know what the files hold. Source: K32, 20-control-plane §11.
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import { InvalidError } from '#base/errors.ts';
import { translateDatabaseError } from './errors.ts';
import { clientConfig, inTransaction, POOL_DEFAULTS } from './pool.ts';

/** One file of `migrations/`. `breaking`: an older version of the code must not use the database after it. */
export type Migration = Readonly<{ version: number; name: string; kind: 'breaking' | 'compatible'; sql: string }>;

const FILE_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/;
const FIRST_LINE = /^-- (breaking|compatible)\n/;
/** Key of the advisory lock; any constant that nobody else uses. */
const LOCK_KEY = 7_271_838_401;

/** Reads the files in their order. Errors: a plain Error for a wrong name, number or first line. */
export const loadMigrations = async (
  directory: URL = new URL('./migrations/', import.meta.url),
): Promise<Migration[]> => {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const match = FILE_NAME.exec(name);
    const sql = await readFile(new URL(name, directory), 'utf8');
    const kind = FIRST_LINE.exec(sql)?.[1];
    if (match?.[1] === undefined || match[2] === undefined) throw new Error(`migration ${name}: wrong file name`);
    if (kind !== 'breaking' && kind !== 'compatible') {
      throw new Error(`migration ${name}: the first line must be "-- breaking" or "-- compatible"`);
    }
    const version = Number(match[1]);
    if (migrations.at(-1)?.version === version) throw new Error(`migration ${name}: number ${version} is used twice`);
    migrations.push({ version, name: match[2], kind, sql });
  }
  return migrations;
};

type Applied = Readonly<{ version: number; name: string; kind: string }>;

/** The migrations that the database has not seen; throws for a database that a newer, incompatible version migrated. */
export const pendingMigrations = (known: readonly Migration[], applied: readonly Applied[]): Migration[] => {
  const versions = new Set(known.map((migration) => migration.version));
  const newer = applied.filter((row) => !versions.has(row.version) && row.kind === 'breaking');
  const newest = newer.at(-1);
  if (newest !== undefined) {
    throw new InvalidError(
      'newer_database',
      `the database has migration ${newest.version} (${newest.name}), which this version does not know ` +
        `(it knows up to ${known.at(-1)?.version ?? 0}); run the newer version`,
    );
  }
  const seen = new Set(applied.map((row) => row.version));
  return known.filter((migration) => !seen.has(migration.version));
};

/**
 * Applies what is missing, each migration in a transaction of its own, and gives back the versions it applied. Any
 * number of processes may call it at once. Errors: InvalidError `newer_database`, UnavailableError `database_unavailable`.
 */
export const migrate = async (databaseUrl: string, known?: readonly Migration[]): Promise<number[]> => {
  const migrations = known ?? (await loadMigrations());
  const client = new pg.Client({
    ...clientConfig({ databaseUrl, ...POOL_DEFAULTS, statementTimeoutMs: 600_000, applicationName: 'beeuni-migrate' }),
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select pg_advisory_lock($1)', [LOCK_KEY]);
    await client.query(
      `create table if not exists schema_migrations (
         version integer primary key, name text not null, kind text not null,
         applied_at timestamptz not null default now())`,
    );
    const applied = await client.query<Applied>('select version, name, kind from schema_migrations order by version');
    const pending = pendingMigrations(migrations, applied.rows);
    for (const migration of pending) {
      await inTransaction(client, async (query) => {
        await client.query(migration.sql);
        const { version, name, kind } = migration;
        const text = 'insert into schema_migrations (version, name, kind) values ($1, $2, $3)';
        await query({ text, values: [version, name, kind] });
      });
    }
    return pending.map((migration) => migration.version);
  } catch (error) {
    throw translateDatabaseError(error);
  } finally {
    await client.end().catch(() => undefined);
  }
};
