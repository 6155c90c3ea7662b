// The stream of facts over LISTEN on a real Postgres: a snapshot, then every change, resumed without loss, or reset.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { cursorText, FACTS_KEY, makeStreamFacts, versionOf } from '#controlplane/app/facts.ts';
import { makeWaker } from '#controlplane/app/waker.ts';
import { FACTS_CHANNEL, forgetGoneFacts, raiseFact, readFactStream, readFacts } from '#controlplane/store/facts.ts';
import { makeListener } from '#controlplane/store/listen.ts';
import { firstRow } from '#controlplane/store/statement.ts';
import { type FactsFrame, factsFrame } from '#schema/wire/sync.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { AT, aPrompt, aSessionKey, aTurnEnd, storedSessions } from '#test/support/stored-sessions.ts';
import { until } from '#test/support/until.ts';

let database: TestDatabase;
let parts: ReturnType<typeof storedSessions>;
let streamFacts: ReturnType<typeof makeStreamFacts>;
let listener: ReturnType<typeof makeListener>;
before(async () => {
  database = await freshDatabase({ poolSize: 12 });
  parts = storedSessions(database.pool);
  const waker = makeWaker(systemClock);
  listener = makeListener({
    databaseUrl: database.databaseUrl,
    channels: [FACTS_CHANNEL],
    onMessage: () => waker.wake(FACTS_KEY),
    onGap: () => waker.wakeAll(),
    onError: () => undefined,
    clock: systemClock,
    random: Math.random,
  });
  listener.start();
  const { query } = database.pool;
  streamFacts = makeStreamFacts({
    readStream: async () => {
      const row = await firstRow(query, readFactStream());
      assert.ok(row);
      return row;
    },
    readFacts: (afterVersion, limit) => query(readFacts(afterVersion, limit)),
    waker,
    clock: systemClock,
  });
});
after(() => listener.stop());

/** Reads the stream until `stop`, checking every frame against the contract. */
const reader = (from: string | undefined) => {
  const frames: FactsFrame[] = [];
  const controller = new AbortController();
  const running = streamFacts(from, {
    send: (frame) => {
      frames.push(factsFrame.parse(frame));
      return !controller.signal.aborted;
    },
    drained: async () => true,
    signal: controller.signal,
  });
  const facts = () => frames.flatMap((frame) => (frame.type === 'fact' ? [frame] : []));
  return {
    frames,
    facts,
    of: (uid: string) => facts().findLast((frame) => frame.fact.uid === uid)?.fact,
    cursor: () =>
      frames.findLast((frame) => frame.type === 'fact' || frame.type === 'snapshot-end') as { cursor: string },
    caughtUp: () => until('the snapshot ends', () => frames.some((frame) => frame.type === 'snapshot-end')),
    stop: async () => {
      controller.abort();
      await running;
    },
  };
};

test('10-kubernetes §6 the stream begins with a snapshot and follows with changes, each with a growing cursor', async () => {
  await parts.inbox.admit(aSessionKey('follow'), aPrompt('follow', 'spec:follow'));
  const stream = reader(undefined);
  await stream.caughtUp();
  const before = stream.of('follow');
  assert.ok(before?.kind === 'session');
  assert.deepEqual([before.wanted, before.podUid, before.generation, before.activity], [true, null, 0, null]);

  const claim = await parts.claim('follow');
  const turn = await parts.take(claim);
  await until('the turn is seen', () => {
    const fact = stream.of('follow');
    return fact?.kind === 'session' && fact.activity?.turnId === turn;
  });
  const working = stream.of('follow');
  assert.ok(working?.kind === 'session');
  assert.deepEqual([working.activity?.state, working.idleSince, working.wanted], ['Working', null, false]);

  await parts.append({ sessionUid: 'follow', generation: claim.generation, events: [aTurnEnd(1, turn)] });
  await until('the end is seen', () => {
    const fact = stream.of('follow');
    return fact?.kind === 'session' && fact.specPromptFinal !== null;
  });
  const idle = stream.of('follow');
  assert.ok(idle?.kind === 'session');
  assert.deepEqual(idle.specPromptFinal, { outcome: 'Succeeded', message: null });
  assert.deepEqual([idle.lastTurn?.id, idle.lastTurn?.isSpecPrompt, idle.lastTurn?.final], [turn, true, true]);
  assert.equal(idle.activity?.state, 'Idle');
  assert.notEqual(idle.idleSince, null);

  await parts.ends.remove('follow', AT);
  await until('the removal is seen', () => stream.of('follow')?.kind === 'gone');
  const versions = stream.facts().map((frame) => Number(frame.cursor.split('.')[1]));
  assert.deepEqual(
    versions,
    [...versions].sort((a, b) => a - b),
  );
  await stream.stop();
});

test('a reader that resumes with its cursor misses no change, whatever commits in between and in which order', async () => {
  const first = reader(undefined);
  await first.caughtUp();
  const { cursor } = first.cursor();
  await first.stop();
  const uids = Array.from({ length: 40 }, (_, index) => `gap-${index}`);
  let stream = reader(cursor);
  const seen = new Set<string>();
  const work = Promise.all(uids.map((uid) => parts.inbox.admit(aSessionKey(uid), aPrompt(uid, 'm1'))));
  for (let round = 0; round < 5; round += 1) {
    await stream.caughtUp();
    const next = stream.cursor().cursor;
    for (const frame of stream.facts()) seen.add(frame.fact.uid);
    assert.ok(stream.frames.every((frame) => frame.type !== 'reset'));
    await stream.stop();
    stream = reader(next);
  }
  await work;
  await until('every session was seen', () => {
    for (const frame of stream.facts()) seen.add(frame.fact.uid);
    return uids.every((uid) => seen.has(uid));
  });
  await stream.stop();
});

test('a version is only seen when everything below it is: commits that overlap never hide one behind another', async () => {
  let release = () => {};
  let isFirst = false;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow = database.pool.withTransaction(async (query) => {
    await raiseFact(query, { kind: 'gone', uid: 'slow' });
    isFirst = true;
    await held;
  });
  await until('the first change has its version', () => isFirst);
  const fast = database.pool.withTransaction((query) => raiseFact(query, { kind: 'gone', uid: 'fast' }));
  const waits = `select 1 from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())`;
  try {
    await until('the second change waits for the first', async () => (await parts.rows(waits)).length > 0);
  } finally {
    release();
  }
  await Promise.all([slow, fast]);
  const versions = await parts.rows<{ uid: string; version: number }>(
    `select uid, version from facts where uid in ('slow', 'fast') order by version`,
  );
  assert.deepEqual(
    versions.map((row) => row.uid),
    ['slow', 'fast'],
  );
});

test('10-kubernetes §6 a cursor of another database, of the future or of a forgotten past is reset', async () => {
  const { epoch, head } = (await firstRow(database.pool.query, readFactStream())) ?? { epoch: '', head: 0 };
  await parts.inbox.admit(aSessionKey('forgotten'), aPrompt('forgotten', 'm1'));
  await parts.ends.remove('forgotten', AT);
  await database.pool.query(forgetGoneFacts(-1));
  for (const cursor of [cursorText('other', 1), cursorText(epoch, head + 1_000), cursorText(epoch, 1), 'nonsense']) {
    const stream = reader(cursor);
    await stream.caughtUp();
    assert.equal(stream.frames[0]?.type, 'reset', cursor);
    await stream.stop();
  }
});

test('a snapshot does not tell of what is gone', async () => {
  await parts.inbox.admit(aSessionKey('ghost'), aPrompt('ghost', 'm1'));
  await parts.ends.remove('ghost', AT);
  const stream = reader(undefined);
  await stream.caughtUp();
  assert.ok(stream.facts().every((frame) => frame.fact.kind !== 'gone'));
  await stream.stop();
});

test('a cursor is valid from the horizon to the head', () => {
  const stream = { epoch: 'e', horizon: 5, head: 9 };
  assert.deepEqual(
    ['e.4', 'e.5', 'e.9', 'e.10', 'f.7', 'e.x', 'e', ''].map((cursor) => versionOf(cursor, stream)),
    [undefined, 5, 9, undefined, undefined, undefined, undefined, undefined],
  );
});
