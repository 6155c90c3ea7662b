// Usage rows: stored in batches, kept on disk while the database is away, counted once.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import type { UsageRow } from '#controlplane/gateway/ports.ts';
import { makeUsageRecorder } from '#controlplane/gateway/usage-recorder.ts';
import { insertUsage } from '#controlplane/store/usage.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';

let database: TestDatabase;
let folder: string;
let isDown = false;
const logs: string[] = [];

before(async () => {
  database = await freshDatabase();
  folder = await mkdtemp(join(tmpdir(), 'beeuni-usage-'));
});
after(async () => {
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

const row = (sessionUid: string, more: Partial<UsageRow> = {}): UsageRow => ({
  id: randomUUID(),
  at: '2026-11-30T12:00:00.000Z',
  namespace: 'team',
  projectUid: 'p',
  sessionUid,
  generation: 1,
  turnId: null,
  agent: 'dev',
  fallbackFrom: null,
  model: 'demo/large',
  servedModel: 'large',
  status: 200,
  code: null,
  promptTokens: 10,
  cachedTokens: 2,
  completionTokens: 5,
  estimated: false,
  costMicroUsd: 7,
  firstByteMs: 12,
  durationMs: 34,
  requestBytes: 100,
  responseBytes: 200,
  ...more,
});
const recorder = (file: string, maxFileBytes = 1_000_000) =>
  makeUsageRecorder({
    insert: async (rows) => {
      if (isDown) throw new UnavailableError('database_unavailable', 'the database does not answer');
      await database.pool.query(insertUsage(rows));
    },
    file: join(folder, file),
    maxFileBytes,
    clock: systemClock,
    log: createLogger({ level: 'debug', write: (line) => logs.push(line) }),
  });
const stored = async (sessionUid: string): Promise<Record<string, unknown>[]> =>
  database.pool.query({ text: 'select * from usage where session_uid = $1', values: [sessionUid] });

test('a row is stored with every field, and a repeated one counts once', async () => {
  const usage = recorder('one');
  const given = row('fields', { turnId: 't-1' });
  usage.record(given);
  usage.record(given);
  await usage.idle();
  const [found, ...more] = await stored('fields');
  assert.equal(more.length, 0);
  assert.deepEqual(
    [found?.['turn_id'], found?.['prompt_tokens'], found?.['cost_micro_usd'], found?.['at'], found?.['first_byte_ms']],
    ['t-1', 10, 7, '2026-11-30T12:00:00.000Z', 12],
  );
});

test('FC11 rows wait on disk while the database is away, also over a restart, and a cut line is skipped', async () => {
  isDown = true;
  const usage = recorder('two');
  for (let count = 0; count < 250; count += 1) usage.record(row('away'));
  await usage.stop();
  assert.equal((await stored('away')).length, 0);
  const texts = await Promise.all(
    ['two', 'two.draining'].map((name) => readFile(join(folder, name), 'utf8').catch(() => '')),
  );
  assert.equal(texts.join('').trim().split('\n').length, 250);
  await appendFile(join(folder, 'two'), '{"id":"cut');
  isDown = false;
  const next = recorder('two');
  await next.start();
  next.record(row('away'));
  await next.idle();
  assert.equal((await stored('away')).length, 251);
  await assert.rejects(stat(join(folder, 'two')));
  await next.stop();
});

test('a full file stops calls, and a row that the database will never take does not hold up others', async () => {
  isDown = true;
  const usage = recorder('three', 100);
  usage.record(row('full'));
  await usage.idle();
  assert.equal(usage.isFull(), true);
  isDown = false;
  usage.record(row('full'));
  await usage.idle();
  assert.equal(usage.isFull(), false);
  usage.record(row('full', { id: 'no uuid' }));
  await usage.idle();
  usage.record(row('full'));
  await usage.idle();
  assert.equal((await stored('full')).length, 3);
  assert.ok(logs.some((line) => line.includes('a usage row cannot be stored')));
});
