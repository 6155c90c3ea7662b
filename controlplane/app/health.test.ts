// Health reports on a clock that is moved by hand: what is stored, what is only noted, and when silence counts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HealthDocument } from '#schema/wire/health.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { digestOf, makeHealth } from './health.ts';

const aDocument = (changes: Partial<HealthDocument> = {}): HealthDocument => ({
  daemon: 'ok',
  daemon_version: '1',
  capabilities: [],
  status: 'ok',
  runtimeReady: true,
  boot_error: null,
  boot_error_category: null,
  workload: 'session',
  uptime_s: 1,
  static_web_port: null,
  repo_required: true,
  repo_ready: true,
  repo: null,
  branch: 'b',
  commit_sha: null,
  compiled_boot_mode: null,
  compiled_checkout: null,
  agent_config_etag: null,
  runtime: { state: 'starting', running: null },
  runtime_truth: null,
  config_provider: null,
  push_error: null,
  turn_in_flight: null,
  turn_end: null,
  turn_orphaned_prompt: null,
  harness: {
    id: 'opencode',
    version: '1',
    state: 'ok',
    ready: true,
    error: null,
    session: { id: null, required: true },
    turn: null,
    details: {},
  },
  config: {
    release_id: null,
    desired_release_id: null,
    source: 'workspace',
    mode: 'off',
    proven: true,
    fallback_reason: null,
    failed_release_id: null,
  },
  activity: { state: 'Idle', since: '2026-11-30T12:00:00Z', turnId: null },
  boot_timeline: [],
  isolation: 'enforced',
  auth: 'configured',
  ...changes,
});

const bench = () => {
  const clock = manualClock();
  const saved: string[] = [];
  const digests = new Map<string, string>();
  const touched: string[][] = [];
  let rounds = 0;
  let isDown = false;
  const failWhenDown = async () => {
    if (isDown) throw new Error('the database is down');
  };
  const health = makeHealth({
    save: async (uid, _generation, _document, digest) => {
      saved.push(uid);
      digests.set(uid, digest);
    },
    touch: async (uids) => {
      await failWhenDown();
      if (uids.length > 0) touched.push([...uids]);
    },
    markSilent: async () => {
      await failWhenDown();
      rounds += 1;
      return 0;
    },
    read: async () => undefined,
    errands: async (uid) => ({
      prompts_waiting: true,
      abort_turn_id: 't1',
      digest: digests.get(uid) ?? null,
      answers: [],
    }),
    clock,
    onError: () => undefined,
  });
  const claim = (uid: string, generation = 1) => ({ sessionUid: uid, generation, podUid: `pod-${uid}` });
  return {
    clock,
    saved,
    digests,
    touched,
    health,
    claim,
    silenceRounds: () => rounds,
    setDown: (down: boolean) => {
      isDown = down;
    },
  };
};

test('K14 a report that changes nothing that matters is not stored, only noted with others', async () => {
  const { health, saved, touched, claim, clock } = bench();
  health.start();
  await health.report(claim('a'), aDocument());
  await health.report(claim('a'), aDocument({ uptime_s: 11 }));
  await health.report(claim('b'), aDocument());
  await health.report(claim('b'), aDocument({ uptime_s: 99, boot_timeline: [{ stage: 'clone', atMs: 3 }] }));
  assert.deepEqual(saved, ['a', 'b']);
  await clock.advance(3_000);
  assert.deepEqual(touched, [['a', 'b']]);
  health.stop();
});

test('a change that matters is stored at once, whichever replica stored the report before', async () => {
  const { health, saved, claim, digests } = bench();
  await health.report(claim('a'), aDocument());
  await health.report(claim('a'), aDocument({ runtimeReady: false }));
  digests.delete('a');
  await health.report(claim('a', 2), aDocument({ runtimeReady: false }));
  assert.equal(saved.length, 3);
  digests.set('a', 'what another replica stored meanwhile');
  await health.report(claim('a', 2), aDocument({ runtimeReady: false }));
  assert.equal(saved.length, 4);
});

test('the answer to a report says what waits', async () => {
  const { health, claim } = bench();
  assert.deepEqual(await health.report(claim('a'), aDocument()), {
    promptsWaiting: true,
    abortTurnId: 't1',
    answers: [],
  });
});

test('K14 nobody is called silent before 30 s of sound rounds: not after a start, not after an outage', async () => {
  const { health, clock, silenceRounds, setDown } = bench();
  health.start();
  await clock.advance(30_000);
  assert.equal(silenceRounds(), 0);
  await clock.advance(6_000);
  assert.ok(silenceRounds() > 0);
  setDown(true);
  await clock.advance(12_000);
  setDown(false);
  const before = silenceRounds();
  await clock.advance(30_000);
  assert.equal(silenceRounds(), before);
  await clock.advance(9_000);
  assert.ok(silenceRounds() > before);
  health.stop();
});

test('daemons that answered during an outage are noted once it is over', async () => {
  const { health, clock, claim, touched, setDown } = bench();
  health.start();
  await health.report(claim('a'), aDocument());
  setDown(true);
  await health.report(claim('a'), aDocument());
  await clock.advance(9_000);
  setDown(false);
  await clock.advance(3_000);
  assert.deepEqual(touched, [['a']]);
  health.stop();
});

test('the digest sees activity and harness, and neither clocks nor counters', () => {
  const base = digestOf(aDocument());
  const { activity, harness } = aDocument();
  assert.equal(digestOf(aDocument({ uptime_s: 5, activity: { ...activity, since: '2026-12-01T00:00:00Z' } })), base);
  assert.equal(digestOf(aDocument({ harness: { ...harness, details: { pid: 7 } } })), base);
  assert.notEqual(digestOf(aDocument({ activity: { ...activity, state: 'Working' } })), base);
  assert.notEqual(digestOf(aDocument({ harness: { ...harness, state: 'down' } })), base);
});
