// Migrations on a real Postgres: once, again, many at once, and against a newer database.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { InvalidError } from '#base/errors.ts';
import { loadMigrations, migrate } from '#controlplane/store/migrate.ts';
import { emptyDatabase } from '#test/support/postgres.ts';

const withClient = async <T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

test('K32 a second run applies nothing', async () => {
  const database = await emptyDatabase();
  const known = await loadMigrations();
  assert.ok(known.length >= 5);
  assert.deepEqual(
    await migrate(database.databaseUrl),
    known.map((migration) => migration.version),
  );
  assert.deepEqual(await migrate(database.databaseUrl), []);
  await database.drop();
});

test('K32 twenty migrators at once apply every migration exactly once', async () => {
  const database = await emptyDatabase();
  const known = await loadMigrations();
  const results = await Promise.all(Array.from({ length: 20 }, () => migrate(database.databaseUrl)));
  assert.deepEqual(
    results.flat().sort((a, b) => a - b),
    known.map((migration) => migration.version),
  );
  await database.drop();
});

test('K32 a database with an unknown breaking migration is refused, with an unknown compatible one used', async () => {
  const database = await emptyDatabase();
  const known = await loadMigrations();
  await migrate(database.databaseUrl, [
    ...known,
    { version: 9000, name: 'later', kind: 'compatible', sql: 'select 1' },
  ]);
  assert.deepEqual(await migrate(database.databaseUrl), []);
  await migrate(database.databaseUrl, [...known, { version: 9001, name: 'newest', kind: 'breaking', sql: 'select 1' }]);
  await assert.rejects(migrate(database.databaseUrl), (error: unknown) => {
    assert.ok(error instanceof InvalidError);
    assert.equal(error.code, 'newer_database');
    assert.match(error.message, /9001 \(newest\)/);
    return true;
  });
  await database.drop();
});

test('a migration that fails leaves nothing of itself', async () => {
  const database = await emptyDatabase();
  const broken = {
    version: 1,
    name: 'broken',
    kind: 'compatible',
    sql: 'create table half (id int); select 1/0',
  } as const;
  await assert.rejects(migrate(database.databaseUrl, [broken]));
  const left = await withClient(database.databaseUrl, (client) => client.query(`select to_regclass('half') as name`));
  assert.equal(left.rows[0].name, null);
  await database.drop();
});

test('D7 the database refuses a generation that goes back', async () => {
  const database = await emptyDatabase();
  await migrate(database.databaseUrl);
  await withClient(database.databaseUrl, async (client) => {
    await client.query(
      `insert into sessions (uid, namespace, name, project_uid, generation) values ('u', 'n', 's', 'p', 3)`,
    );
    await assert.rejects(client.query(`update sessions set generation = 2 where uid = 'u'`), { code: '23514' });
    await client.query(`update sessions set generation = 4 where uid = 'u'`);
  });
  await database.drop();
});
