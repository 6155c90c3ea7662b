// Audit rows and idempotency keys in a real Postgres.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ConflictError, InvalidError } from '#base/errors.ts';
import { makeRecordWrite, type RecordWrite, type StoredAnswer } from '#controlplane/app/writes.ts';
import { makeRecordReads } from '#controlplane/store/records.ts';
import { forgetOldWrites, makeWriteRecords } from '#controlplane/store/write-records.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';

describe('records of changes', () => {
  let database: TestDatabase;
  let record: RecordWrite;
  const lost: unknown[] = [];
  before(async () => {
    database = await freshDatabase();
    record = makeRecordWrite({ records: makeWriteRecords(database.pool), onLost: (error) => lost.push(error) });
  });
  after(() => database.close());

  let counter = 0;
  let state: string | undefined;
  const write = (digest = 'd1', subject = 'user:ann') => {
    counter += 1;
    const digestState = async () => state;
    return {
      requestId: `r${counter}`,
      subject,
      operation: 'createSession',
      namespace: 'ns',
      name: 'x',
      digest,
      digestState,
    };
  };
  const answering = (runs: { count: number }) => async (): Promise<StoredAnswer> => {
    runs.count += 1;
    return { status: 201, body: { n: runs.count } };
  };
  type AuditRow = {
    request_id: string;
    subject: string;
    status: number | null;
    code: string | null;
    ended_at: string | null;
  };
  const auditOf = async (requestId: string): Promise<AuditRow | undefined> =>
    (
      await database.pool.query<AuditRow>({ text: 'select * from audit where request_id = $1', values: [requestId] })
    )[0];

  test('a change leaves one row with who, what and how it ended', async () => {
    const mine = write();
    await record(mine, undefined, answering({ count: 0 }));
    const row = await auditOf(mine.requestId);
    assert.deepEqual([row?.subject, row?.status, row?.code], ['user:ann', 201, null]);
    assert.notEqual(row?.ended_at, null);
  });

  test('a refused change leaves its code, and a fault of ours leaves "internal"', async () => {
    const refused = write();
    await assert.rejects(
      record(refused, undefined, () => Promise.reject(new ConflictError('already_exists', 'it exists'))),
      ConflictError,
    );
    assert.equal((await auditOf(refused.requestId))?.code, 'already_exists');
    const broken = write();
    await assert.rejects(
      record(broken, undefined, () => Promise.reject(new TypeError('oops'))),
      TypeError,
    );
    const row = await auditOf(broken.requestId);
    assert.deepEqual([row?.status, row?.code], [500, 'internal']);
  });

  test('a row has the digests of the state before and after a success, and of a refusal only the one before', async () => {
    const digestsOf = async (requestId: string) =>
      database.pool.query({
        text: 'select before_digest, after_digest from audit where request_id = $1',
        values: [requestId],
      });
    state = 'one';
    const mine = write();
    await record(mine, undefined, async () => {
      state = 'two';
      return { status: 200, body: null };
    });
    assert.deepEqual(await digestsOf(mine.requestId), [{ before_digest: 'one', after_digest: 'two' }]);
    const refused = write();
    await assert.rejects(record(refused, undefined, () => Promise.reject(new ConflictError('conflict', 'no'))));
    assert.deepEqual(await digestsOf(refused.requestId), [{ before_digest: 'two', after_digest: null }]);
    state = undefined;
  });

  test('the same key and call give the same answer, run once and audited once', async () => {
    const runs = { count: 0 };
    const first = await record(write(), 'key-1', answering(runs));
    const again = write();
    assert.deepEqual(await record(again, 'key-1', answering(runs)), first);
    assert.equal(runs.count, 1);
    assert.equal(await auditOf(again.requestId), undefined);
  });

  test('a key belongs to its subject', async () => {
    const runs = { count: 0 };
    await record(write('d1', 'user:bob'), 'key-1', answering(runs));
    assert.equal(runs.count, 1);
  });

  test('the same key with another call is refused', async () => {
    await assert.rejects(record(write('d2'), 'key-1', answering({ count: 0 })), (error: unknown) => {
      assert.ok(error instanceof InvalidError);
      assert.deepEqual([error.code, error.status], ['idempotency_key_reused', 422]);
      return true;
    });
  });

  test('of many calls with one key at once, one runs', async () => {
    const runs = { count: 0 };
    const gate = Promise.withResolvers<void>();
    const run = async (): Promise<StoredAnswer> => {
      runs.count += 1;
      await gate.promise;
      return { status: 202, body: null };
    };
    let refused = 0;
    const calls = Array.from({ length: 5 }, () => record(write(), 'key-2', run));
    for (const call of calls) {
      call.catch(() => {
        refused += 1;
        if (refused === 4) gate.resolve();
      });
    }
    const results = await Promise.allSettled(calls);
    assert.equal(runs.count, 1);
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const result of results) {
      if (result.status === 'rejected') assert.match(String(result.reason), /has not ended yet/);
    }
  });

  test('a failed call frees its key', async () => {
    await assert.rejects(record(write(), 'key-3', () => Promise.reject(new ConflictError('conflict', 'again'))));
    const answer = await record(write(), 'key-3', answering({ count: 0 }));
    assert.equal(answer.status, 201);
  });

  test('a key is free again after 24 hours, and one whose call died after two minutes', async () => {
    const age = (key: string, interval: string) =>
      database.pool.query({
        text: `update idempotency_keys set created_at = now() - $2::interval where key = $1`,
        values: [key, interval],
      });
    const runs = { count: 0 };
    await record(write(), 'key-4', answering(runs));
    await age('key-4', '23 hours');
    await record(write(), 'key-4', answering(runs));
    assert.equal(runs.count, 1);
    await age('key-4', '25 hours');
    await record(write('d9'), 'key-4', answering(runs));
    assert.equal(runs.count, 2);

    const records = makeWriteRecords(database.pool);
    await records.claimKey('user:ann', 'key-5', 'd1');
    assert.equal((await records.claimKey('user:ann', 'key-5', 'd1')).kind, 'running');
    await age('key-5', '3 minutes');
    assert.equal((await records.claimKey('user:ann', 'key-5', 'd1')).kind, 'claimed');
  });

  test('B42 a row whose process died is open no longer than a call may run, and then unknown', async () => {
    const reads = makeRecordReads(database.pool);
    const died = write();
    const id = await makeWriteRecords(database.pool).begin(died, undefined);
    const outcomeOf = async (): Promise<string | undefined> =>
      (await reads.audit({ requestId: died.requestId }, Number.MAX_SAFE_INTEGER, 2))[0]?.outcome;
    assert.equal(await outcomeOf(), 'open');
    await database.pool.query({
      text: `update audit set at = now() - interval '3 minutes' where id = $1`,
      values: [id],
    });
    assert.equal(await outcomeOf(), 'unknown');
    const filter = { requestId: died.requestId, outcome: 'open' as const };
    assert.deepEqual(await reads.audit(filter, Number.MAX_SAFE_INTEGER, 2), []);
    await makeWriteRecords(database.pool).end(id, { status: 200, code: undefined, after: undefined });
    assert.equal(await outcomeOf(), 'ok', 'it was only slow');
  });

  test('a key that could forge a line is refused', async () => {
    for (const key of ['', 'a b', 'a\nb', 'x'.repeat(256)]) {
      await assert.rejects(record(write(), key, answering({ count: 0 })), InvalidError);
    }
  });

  test('what no longer counts is removed', async () => {
    await database.pool.query({
      text: `update audit set at = now() - interval '91 days' where request_id = 'r1'`,
      values: [],
    });
    for (const statement of forgetOldWrites(90)) await database.pool.query(statement);
    assert.equal(await auditOf('r1'), undefined);
    assert.notEqual(await auditOf('r2'), undefined);
    assert.deepEqual(lost, []);
  });
});
