// Rows of health reports on a real Postgres: generations, silence, and the facts that follow.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { HealthDocument } from '#schema/wire/health.ts';
import { freshDatabase } from '#test/support/postgres.ts';
import { AT, storedSessions } from '#test/support/stored-sessions.ts';

let parts: ReturnType<typeof storedSessions>;
before(async () => {
  parts = storedSessions((await freshDatabase()).pool);
});

const document = { daemon: 'ok', runtimeReady: true, capabilities: [] as string[] } as HealthDocument;

const versionOf = async (uid: string): Promise<number> => {
  const [row] = await parts.rows<{ version: number }>('select version from facts where uid = $1', uid);
  return row?.version ?? 0;
};

const ageBy = (uid: string, seconds: number) =>
  parts.rows(
    `update health_reports set reported_at = reported_at - make_interval(secs => $2) where session_uid = $1`,
    uid,
    seconds,
  );

test('K14 a daemon that did not answer for 30 s is silent once, and answering again with its next report', async () => {
  const claim = await parts.claim('quiet');
  await parts.claim('other');
  await parts.health.save('quiet', claim.generation, document, 'digest');
  const reported = await versionOf('quiet');
  assert.equal((await parts.health.errands('quiet', claim.podUid))?.digest, 'digest');
  await ageBy('quiet', 29);
  assert.equal(await parts.health.markSilent(30), 0);
  await ageBy('quiet', 2);
  assert.equal(await parts.health.markSilent(30), 1);
  assert.equal(await parts.health.markSilent(30), 0);
  assert.equal((await parts.health.read('quiet'))?.state, 'Silent');
  const silent = await versionOf('quiet');
  assert.ok(silent > reported);

  await parts.health.touch(['quiet', 'unknown']);
  assert.equal((await parts.health.read('quiet'))?.state, 'Answering');
  const back = await versionOf('quiet');
  assert.ok(back > silent);
  await parts.health.touch(['quiet']);
  assert.equal(await versionOf('quiet'), back);
});

test('a report of an older generation is not stored, and a claim forgets the report of the pod before', async () => {
  const old = await parts.claim('gen', 'pod-1');
  await parts.health.save('gen', old.generation, document, 'digest');
  const present = await parts.claim('gen', 'pod-2');
  assert.equal(await parts.health.read('gen'), undefined);
  assert.equal((await parts.health.errands('gen', 'pod-2'))?.digest, null);
  await parts.health.save('gen', old.generation, document, 'digest');
  assert.equal(await parts.health.read('gen'), undefined);
  await parts.health.save('gen', present.generation, document, 'digest');
  assert.equal((await parts.health.read('gen'))?.state, 'Answering');
  await parts.ends.podGone('gen', 'pod-2', AT);
  assert.equal(await parts.health.read('gen'), undefined);
});

test('A30 what a harness offers is known after its report is gone, until another one reports', async () => {
  const capabilitiesOf = async (): Promise<unknown> =>
    (await parts.rows<{ capabilities: unknown }>("select capabilities from sessions where uid = 'offers'"))[0]
      ?.capabilities;
  const first = await parts.claim('offers', 'pod-1');
  await parts.health.save('offers', first.generation, document, 'starting');
  assert.equal(await capabilitiesOf(), null);
  await parts.health.save('offers', first.generation, { ...document, capabilities: ['session.todo'] }, 'ready');
  await parts.health.save('offers', first.generation, { ...document, capabilities: ['session.todo'] }, 'working');
  await parts.ends.podGone('offers', 'pod-1', AT);
  const second = await parts.claim('offers', 'pod-2');
  await parts.health.save('offers', second.generation, document, 'starting');
  assert.deepEqual(await capabilitiesOf(), ['session.todo']);
  await parts.health.save('offers', second.generation, { ...document, capabilities: ['session.compact'] }, 'ready');
  assert.deepEqual(await capabilitiesOf(), ['session.compact']);
});
