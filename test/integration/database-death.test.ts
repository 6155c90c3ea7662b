// The database dies in the middle of appends and starts again: what was acknowledged is there, nothing is there twice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnavailableError } from '#base/errors.ts';
import { migrate } from '#controlplane/store/migrate.ts';
import { createPool, POOL_DEFAULTS } from '#controlplane/store/pool.ts';
import { ownServer } from '#test/support/postgres-server.ts';
import { anEvent, storedSessions } from '#test/support/stored-sessions.ts';

const PRODUCERS = 8;
const EVENTS = 60;
const DEADLINE_MS = 60_000;

test('FD1 killing Postgres during appends loses no acknowledged event and doubles none', {
  timeout: 120_000,
}, async () => {
  const server = await ownServer(['fsync=on', 'synchronous_commit=on']);
  try {
    await migrate(server.databaseUrl);
    const pool = createPool({
      ...POOL_DEFAULTS,
      databaseUrl: server.databaseUrl,
      applicationName: 'beeuni-test',
      onIdleError: () => undefined,
    });
    const parts = storedSessions(pool);
    const uids = Array.from({ length: PRODUCERS }, (_, index) => `session-${index}`);
    const claims = await Promise.all(uids.map((uid) => parts.claim(uid)));
    const acknowledged = new Map(uids.map((uid) => [uid, 0]));
    const total = () => [...acknowledged.values()].reduce((sum, n) => sum + n, 0);
    let failures = 0;
    const end = Date.now() + DEADLINE_MS;

    const produce = async (uid: string, generation: number) => {
      while ((acknowledged.get(uid) ?? 0) < EVENTS) {
        assert.ok(Date.now() < end, `producer ${uid} stands at ${acknowledged.get(uid)} of ${EVENTS}`);
        const n = (acknowledged.get(uid) ?? 0) + 1;
        try {
          const answer = await parts.append({ sessionUid: uid, generation, events: [anEvent(n)] });
          acknowledged.set(uid, answer.acknowledgedN);
        } catch (error) {
          assert.ok(error instanceof UnavailableError, String(error));
          failures += 1;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    };
    const kill = async (whenTotal: number) => {
      while (total() < whenTotal) await new Promise((resolve) => setTimeout(resolve, 2));
      const pid = server.embedded.pid();
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    };
    const kills = kill(PRODUCERS * 10).then(() => kill(PRODUCERS * 30));
    await Promise.all([...claims.map((claim) => produce(claim.sessionUid, claim.generation)), kills]);

    assert.ok(failures > 0, 'no append met the dead database, so nothing was tested');
    for (const uid of uids) {
      const rows = await parts.rows<{ seq: number; n: number }>(
        'select seq, n from events where session_uid = $1 order by seq',
        uid,
      );
      assert.deepEqual(
        rows,
        Array.from({ length: EVENTS }, (_, index) => ({ seq: index + 1, n: index + 1 })),
      );
    }
    await pool.close();
  } finally {
    await server.stop();
  }
});
