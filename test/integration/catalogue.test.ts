// The live catalogue against what is written down: the golden dump and the row schemas.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, test } from 'node:test';
import { z } from 'zod';
import { describeDatabase, readColumns } from '#controlplane/store/catalogue.ts';
import { ROWS } from '#controlplane/store/rows.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';

let database: TestDatabase;
before(async () => {
  database = await freshDatabase();
});

/** What a column of each type looks like to the driver. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  text: 'x',
  uuid: '00000000-0000-0000-0000-000000000000',
  integer: 1,
  bigint: 1,
  boolean: true,
  'timestamp with time zone': '2026-11-30T12:00:00.000Z',
  bytea: Buffer.from('x'),
  json: {},
  jsonb: {},
  tsvector: "'word':1",
};

test('the migrations make exactly controlplane/store/schema.sql (make schema rewrites it)', async () => {
  const golden = await readFile(new URL('../../controlplane/store/schema.sql', import.meta.url), 'utf8');
  assert.equal(await describeDatabase(database.pool.query), golden);
});

test('every table has a row schema with exactly its columns, nullable exactly where the column is', async () => {
  const byTable = Map.groupBy(await readColumns(database.pool.query), (column) => column.table_name);
  assert.deepEqual([...byTable.keys()].sort(), Object.keys(ROWS).sort());
  for (const [table, schema] of Object.entries(ROWS)) {
    const columns = byTable.get(table) ?? [];
    assert.deepEqual(
      columns.map((column) => column.name),
      Object.keys(schema.shape),
      table,
    );
    for (const column of columns) {
      const where = `${table}.${column.name}`;
      const field = (schema.shape as Readonly<Record<string, z.ZodType>>)[column.name];
      assert.ok(field, where);
      assert.ok(column.type in SAMPLES, `${where} has the new type ${column.type}`);
      const isEnum =
        field instanceof z.ZodEnum || (field instanceof z.ZodNullable && field.unwrap() instanceof z.ZodEnum);
      if (!isEnum) assert.ok(field.safeParse(SAMPLES[column.type]).success, `${where} does not take ${column.type}`);
      const isJson = column.type.startsWith('json');
      if (!isJson) assert.equal(field.safeParse(null).success, !column.not_null, `${where} nullability`);
    }
  }
});
