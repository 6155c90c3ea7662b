// The event log on a real Postgres: dense places, resends, gaps, old generations, poison, and the effects of turns.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { ConflictError, InvalidError } from '#base/errors.ts';
import { readWholeEvent } from '#controlplane/store/whole-event.ts';
import { MAX_EVENT_BYTES } from '#schema/events/envelope.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { anEvent, aPrompt, aSessionKey, aTurnEnd, storedSessions } from '#test/support/stored-sessions.ts';

let database: TestDatabase;
let parts: ReturnType<typeof storedSessions>;
before(async () => {
  database = await freshDatabase();
  parts = storedSessions(database.pool);
});
after(() => database.close());

const assertDense = (log: readonly { seq: number }[]): void => {
  assert.deepEqual(
    log.map((event) => event.seq),
    log.map((_event, index) => index + 1),
  );
};

test('20-control-plane §8 places are dense per session under 64 producers with appends in flight', async () => {
  const uids = Array.from({ length: 64 }, (_, index) => `dense-${index}`);
  await Promise.all(
    uids.map(async (uid) => {
      const { generation } = await parts.claim(uid);
      const sizes = [1, 3, 2, 5, 1, 4];
      const appends: Promise<unknown>[] = [];
      let n = 1;
      for (const size of sizes) {
        const events = Array.from({ length: size }, () => anEvent(n++));
        appends.push(parts.append({ sessionUid: uid, generation, events }));
      }
      await Promise.all(appends);
    }),
  );
  for (const uid of uids) {
    const log = await parts.log(uid);
    assert.equal(log.length, 16);
    assertDense(log);
    assert.deepEqual(
      log.map((event) => event.data['delta']),
      Array.from({ length: 16 }, (_, index) => `word ${index + 1}`),
    );
  }
});

test('FD2 a resend is a no-op with the same answer, also when it overlaps what is new', async () => {
  const { generation } = await parts.claim('resend');
  const events = [anEvent(1), anEvent(2), anEvent(3)];
  const first = await parts.append({ sessionUid: 'resend', generation, events });
  assert.deepEqual(first, { acknowledgedN: 3, headSeq: 3 });
  assert.deepEqual(await parts.append({ sessionUid: 'resend', generation, events }), first);
  const overlap = await parts.append({ sessionUid: 'resend', generation, events: [...events, anEvent(4)] });
  assert.deepEqual(overlap, { acknowledgedN: 4, headSeq: 4 });
  assertDense(await parts.log('resend'));
});

test('a gap in the counter is refused and stores nothing', async () => {
  const { generation } = await parts.claim('gap');
  await parts.append({ sessionUid: 'gap', generation, events: [anEvent(1)] });
  for (const events of [[anEvent(3)], [anEvent(2), anEvent(4)]]) {
    await assert.rejects(parts.append({ sessionUid: 'gap', generation, events }), (error: unknown) => {
      assert.ok(error instanceof InvalidError);
      assert.equal(error.code, 'invalid_request');
      return true;
    });
  }
  assert.equal((await parts.log('gap')).length, 1);
});

test('FD3 D7 an older generation is refused, and the counter of the new one begins again', async () => {
  const old = await parts.claim('two', 'pod-a');
  await parts.append({ sessionUid: 'two', generation: old.generation, events: [anEvent(1), anEvent(2)] });
  const newer = await parts.claim('two', 'pod-b');
  assert.equal(newer.generation, old.generation + 1);
  const late = parts.append({ sessionUid: 'two', generation: old.generation, events: [anEvent(3)] });
  await assert.rejects(late, (error: unknown) => error instanceof ConflictError && error.code === 'superseded');
  const next = await parts.append({ sessionUid: 'two', generation: newer.generation, events: [anEvent(1)] });
  assert.deepEqual(next, { acknowledgedN: 1, headSeq: 3 });
});

test('an event that cannot be stored is refused alone: what came in the same batch is stored', async () => {
  const good = await parts.claim('good');
  const bad = await parts.claim('bad');
  const poison = anEvent(1, { id: 'a\u0000b' });
  const [stored, refused] = await Promise.allSettled([
    parts.append({ sessionUid: 'good', generation: good.generation, events: [anEvent(1)] }),
    parts.append({ sessionUid: 'bad', generation: bad.generation, events: [poison] }),
  ]);
  assert.equal(stored.status, 'fulfilled');
  assert.ok(refused.status === 'rejected' && refused.reason instanceof InvalidError);
});

test('data with NUL and lone surrogates is stored and read back', async () => {
  const { generation } = await parts.claim('odd');
  const data = { output: 'a\u0000b', half: '\ud800', text: 'ümlaut 🐝' };
  await parts.append({ sessionUid: 'odd', generation, events: [anEvent(1, { data })] });
  const [event] = await parts.log('odd');
  assert.deepEqual(event?.data, JSON.parse(JSON.stringify(data)));
});

test('20-control-plane §8 an event above 256 KiB is kept apart and referred to', async () => {
  const { generation } = await parts.claim('large');
  const data = { output: 'x'.repeat(MAX_EVENT_BYTES) };
  const answer = await parts.append({
    sessionUid: 'large',
    generation,
    events: [anEvent(1), anEvent(2, { data }), anEvent(3)],
  });
  assert.equal(answer.headSeq, 3);
  const [, large] = await parts.log('large');
  const blob = large?.data['blob'] as { bytes: number; sha256: string };
  assert.equal(blob.bytes, Buffer.byteLength(JSON.stringify(data)));
  const [stored] = await parts.rows<{ data: string }>(
    `select data from event_blobs where session_uid = 'large' and seq = 2`,
  );
  assert.deepEqual(JSON.parse(stored?.data ?? ''), data);
  const whole = await readWholeEvent(database.pool.query, 'large', 2);
  assert.deepEqual([whole?.seq, whole?.data], [2, data]);
  assert.equal(await readWholeEvent(database.pool.query, 'large', 4), undefined);
});

test('D17 a turn has one terminal event: a second one is acknowledged and changes nothing', async () => {
  const claim = await parts.claim('turn');
  await parts.inbox.admit(aSessionKey('turn'), aPrompt('turn', 'm1'));
  const turnId = await parts.take(claim);
  const { generation } = claim;
  const first = [anEvent(1, { type: 'turn.started', turnId }), aTurnEnd(2, turnId)];
  await parts.append({ sessionUid: 'turn', generation, events: first });
  const again = await parts.append({
    sessionUid: 'turn',
    generation,
    events: [aTurnEnd(3, turnId, { outcome: 'Failed', code: 'unknown' }), anEvent(4)],
  });
  assert.deepEqual(again, { acknowledgedN: 4, headSeq: 3 });
  const log = await parts.log('turn');
  assertDense(log);
  assert.equal(log.filter((event) => event.type === 'turn.ended').length, 1);
  const [turn] = await parts.rows<{ outcome: string }>(`select outcome from turns where id = $1`, turnId);
  const [prompt] = await parts.rows<{ state: string; outcome: string }>(
    `select state, outcome from prompts where session_uid = 'turn'`,
  );
  assert.equal(turn?.outcome, 'Succeeded');
  assert.deepEqual(prompt, { state: 'ended', outcome: 'Succeeded' });
});

test('the database itself refuses a second terminal event of a turn', async () => {
  const insert = (seq: number) =>
    parts.rows(
      `insert into events (session_uid, seq, generation, id, type, thread_id, turn_id, at, hidden, data)
       values ('raw', $1, 1, 'e', 'turn.ended', 'root', 't1', now(), false, '{}')`,
      seq,
    );
  await insert(1);
  await assert.rejects(insert(2), { code: '23505' });
});

test('a whole turn in one batch ends its prompt, whatever else is in the batch', async () => {
  const claim = await parts.claim('whole');
  await parts.inbox.admit(aSessionKey('whole'), aPrompt('whole', 'm1'));
  const turnId = await parts.take(claim);
  const events = [
    anEvent(1, { type: 'turn.started', turnId }),
    ...Array.from({ length: 50 }, (_, index) => anEvent(index + 2, { turnId })),
    aTurnEnd(52, turnId),
    aTurnEnd(53, turnId),
  ];
  const answer = await parts.append({ sessionUid: 'whole', generation: claim.generation, events });
  assert.deepEqual(answer, { acknowledgedN: 53, headSeq: 52 });
  assert.deepEqual(await parts.inbox.take(claim, (id, attempt) => `${id}-${attempt}`), { state: 'nothing' });
});

test('law: any way to cut, repeat and resend a sequence of events gives the same log', async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 6 })), { maxLength: 8 }),
      async (cuts) => {
        run += 1;
        const sessionUid = `law-${run}`;
        const { generation } = await parts.claim(sessionUid);
        const events = Array.from({ length: 12 }, (_, index) => anEvent(index + 1));
        let acknowledged = 0;
        const send = async (from: number, size: number) => {
          const slice = events.slice(from - 1, from - 1 + size);
          const answer = await parts.append({ sessionUid, generation, events: slice });
          assert.ok(answer.acknowledgedN >= acknowledged);
          acknowledged = answer.acknowledgedN;
        };
        for (const [from, size] of cuts) await send(Math.min(from, acknowledged + 1), size);
        await send(acknowledged === 12 ? 12 : acknowledged + 1, 12);
        const log = await parts.log(sessionUid);
        assertDense(log);
        assert.deepEqual(
          log.map((event) => event.data['delta']),
          events.map((event) => event.data['delta']),
        );
      },
    ),
    { numRuns: 25 },
  );
});
