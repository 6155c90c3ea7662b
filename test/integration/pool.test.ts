// The pool on a real Postgres: time limits, exhaustion, lost connections, transactions, and how values come back.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { UnavailableError } from '#base/errors.ts';
import { createPool, POOL_DEFAULTS, type Pool } from '#controlplane/store/pool.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';

let database: TestDatabase;
before(async () => {
  database = await freshDatabase();
});

const small = async (
  options: { statementTimeoutMs?: number; connectTimeoutMs?: number },
  work: (pool: Pool) => Promise<void>,
) => {
  const pool = createPool({
    ...POOL_DEFAULTS,
    ...options,
    databaseUrl: database.databaseUrl,
    size: 1,
    applicationName: 'beeuni-small',
    onIdleError: () => undefined,
  });
  try {
    await work(pool);
  } finally {
    await pool.close();
  }
};

const isUnavailable = (error: unknown): boolean =>
  error instanceof UnavailableError && error.code === 'database_unavailable';
const one = { text: 'select 1 as one', values: [] };

test('FD7 a statement above its time limit is 503, and the connection goes on', () =>
  small({ statementTimeoutMs: 100 }, async (pool) => {
    await assert.rejects(pool.query({ text: 'select pg_sleep(20)', values: [] }), isUnavailable);
    assert.deepEqual(await pool.query(one), [{ one: 1 }]);
  }));

test('FD7 a caller that gets no connection in time is told 503, and later ones are served', () =>
  small({ connectTimeoutMs: 1_000 }, async (pool) => {
    const holding = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const held = pool.withTransaction(async (query) => {
      await query(one);
      holding.resolve();
      await release.promise;
    });
    await Promise.race([holding.promise, held]);
    await assert.rejects(pool.query(one), isUnavailable);
    assert.deepEqual(pool.usage(), { active: 1, idle: 0, waiting: 0 });
    release.resolve();
    await held;
    assert.deepEqual(await pool.query(one), [{ one: 1 }]);
  }));

test('a connection that is lost in a transaction is 503, commits nothing, and is not used again', () =>
  small({}, async (pool) => {
    await pool.query({ text: 'create table lost (id int)', values: [] });
    const cut = pool.withTransaction(async (query) => {
      await query({ text: 'insert into lost values (1)', values: [] });
      const [own] = await query<{ pid: number }>({ text: 'select pg_backend_pid() as pid', values: [] });
      await database.pool.query({ text: 'select pg_terminate_backend($1)', values: [own?.pid] });
      await query(one);
    });
    await assert.rejects(cut, isUnavailable);
    assert.deepEqual(await pool.query({ text: 'select * from lost', values: [] }), []);
  }));

test('a transaction that throws leaves nothing behind', async () => {
  const { pool } = database;
  await pool.query({ text: 'create table undone (id int)', values: [] });
  const thrown = pool.withTransaction(async (query) => {
    await query({ text: 'insert into undone values (1)', values: [] });
    throw new RangeError('changed my mind');
  });
  await assert.rejects(thrown, RangeError);
  assert.deepEqual(await pool.query({ text: 'select * from undone', values: [] }), []);
});

test('times come back as RFC 3339 in UTC, bigint as number, json parsed and as it was', async () => {
  const text = `select '2026-11-30 13:00:00.5+01'::timestamptz as at, 9007199254740991::bigint as big, '{"b": 1, "a": 2}'::json as body`;
  const [row] = await database.pool.query<{ at: string; big: number; body: object }>({ text, values: [] });
  assert.deepEqual(row, { at: '2026-11-30T12:00:00.500Z', big: Number.MAX_SAFE_INTEGER, body: { b: 1, a: 2 } });
  assert.deepEqual(Object.keys(row?.body ?? {}), ['b', 'a']);
});
