// Session credentials on a clock that is moved by hand.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { ConflictError, UnavailableError } from '#base/errors.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { type CredentialRow, makeCredentials, newDaemonCredential, newSessionCredential } from './credentials.ts';

const bench = () => {
  const clock = manualClock();
  const rows = new Map<string, CredentialRow>();
  let lookups = 0;
  let isDown = false;
  const credentials = makeCredentials({
    findCredential: async (prefix) => {
      lookups += 1;
      if (isDown) throw new UnavailableError('database_unavailable', 'down');
      return rows.get(prefix);
    },
    clock,
  });
  const issue = (sessionUid: string, changes: Partial<CredentialRow> = {}): string => {
    const { text, stored } = newSessionCredential(randomBytes);
    rows.set(stored.prefix, {
      hash: stored.hash,
      session_uid: sessionUid,
      generation: 1,
      pod_uid: 'pod',
      namespace: 'team',
      project_uid: 'project',
      newest_generation: 1,
      closed_at: null,
      ...changes,
    });
    return text;
  };
  return {
    clock,
    credentials,
    issue,
    rows,
    lookups: () => lookups,
    setDown: (down: boolean) => {
      isDown = down;
    },
  };
};

test('20-control-plane §1 a credential leads to its session, and nothing of it is stored in the clear', async () => {
  const { credentials, issue, rows } = bench();
  const text = issue('s1');
  assert.match(text, /^bs_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/);
  assert.equal((await credentials.find(text))?.sessionUid, 's1');
  const [row] = rows.values();
  assert.equal(row?.hash.length, 32);
  assert.ok(!text.includes(row?.hash.toString('hex') ?? ''));
  assert.match(newDaemonCredential(randomBytes), /^bd_[A-Za-z0-9_-]{43}$/);
});

test('a right prefix with a wrong secret, another form, and nonsense lead nowhere', async () => {
  const { credentials, issue, lookups } = bench();
  const text = issue('s1');
  const forged = `${text.slice(0, 16)}${randomBytes(32).toString('base64url')}`;
  assert.equal(await credentials.find(forged), undefined);
  const before = lookups();
  for (const other of ['', 'bs_', `${text}x`, text.toUpperCase(), 'eyJhbGciOi', "bs_'; drop table sessions"]) {
    assert.equal(await credentials.find(other), undefined);
  }
  assert.equal(lookups(), before);
});

test('D7 an older generation is told that it is superseded', async () => {
  const { credentials, issue } = bench();
  await assert.rejects(
    async () => credentials.find(issue('s1', { generation: 1, newest_generation: 2 })),
    (error: unknown) => {
      return error instanceof ConflictError && error.code === 'superseded';
    },
  );
});

test('20-control-plane §1 an answer is remembered for 5 s, and not after a revocation that was heard of', async () => {
  const { credentials, issue, rows, clock, lookups } = bench();
  const text = issue('s1');
  await credentials.find(text);
  await credentials.find(text);
  assert.equal(lookups(), 1);
  rows.clear();
  assert.ok(await credentials.find(text));
  credentials.forget('s1');
  assert.equal(await credentials.find(text), undefined);

  const other = issue('s2');
  await credentials.find(other);
  rows.clear();
  await clock.advance(5_001);
  assert.equal(await credentials.find(other), undefined);
});

test('FC11 while the database is down a known credential goes on for a bounded time, and is never called invalid', async () => {
  const { credentials, issue, clock, setDown } = bench();
  const known = issue('s1');
  const unknown = issue('s2');
  await credentials.find(known);
  setDown(true);
  await clock.advance(30_000);
  assert.equal((await credentials.find(known))?.sessionUid, 's1');
  await assert.rejects(async () => credentials.find(unknown), UnavailableError);
  await clock.advance(31_000);
  await assert.rejects(async () => credentials.find(known), UnavailableError);
});
