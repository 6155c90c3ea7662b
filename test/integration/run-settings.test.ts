// The settings of a run on a real Postgres: pinned once with its turn, told in the log, untouched by what is saved later.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { turnIdOf } from '#controlplane/app/prompts.ts';
import { makeCeilingOfRun } from '#controlplane/app/run-ceiling.ts';
import { snapshotOf } from '#controlplane/app/run-settings.ts';
import type { PinSettings, SandboxClaim, TakenTurn } from '#controlplane/app/session-records.ts';
import { firstRow } from '#controlplane/store/statement.ts';
import { getSessionTurnSettings } from '#controlplane/store/turns.ts';
import { EVENT_DATA } from '#schema/events/envelope.ts';
import { COMPILED_BUDGETS } from '#schema/settings/budgets.ts';
import { budgetsOfRun, pinnedText, type RunSettings } from '#schema/settings/run-settings.ts';
import { TURN_HEADER } from '#schema/wire/gateway.ts';
import { rigProvider, startGatewayRig } from '#test/support/gateway-rig.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { startScriptedProvider } from '#test/support/scripted-provider.ts';
import { SETTINGS_REGISTRY, type SettingsApi, startSettingsApi } from '#test/support/settings-api.ts';
import { AT, anEvent, aPrompt, aSessionKey, aTurnEnd, storedSessions } from '#test/support/stored-sessions.ts';

let database: TestDatabase;
let api: SettingsApi;
let parts: ReturnType<typeof storedSessions>;
before(async () => {
  database = await freshDatabase({ poolSize: 12 });
  api = await startSettingsApi(database.pool);
  parts = storedSessions(database.pool);
});
after(() => api.stop());

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const pin: PinSettings = (stored, prompt) => ({
  at: AT,
  settings: snapshotOf(api.app, stored, { run: prompt.model, environment: 'env/main' }, SETTINGS_REGISTRY, sha256),
});
const take = async (claim: SandboxClaim): Promise<TakenTurn> => {
  const taking = await parts.inbox.take(claim, turnIdOf, pin);
  assert.ok(taking.state === 'taken', taking.state);
  return taking.turn;
};
const save = async (body: unknown): Promise<void> => {
  const { status, body: answer } = await api.send('PUT', 'supervisor', body);
  assert.equal(status, 200, JSON.stringify(answer));
};
const pinsOf = async (uid: string) => (await parts.log(uid)).filter(({ type }) => type === 'run.settings.pinned');
const end = (claim: SandboxClaim, n: number, turnId: string) =>
  parts.append({ sessionUid: claim.sessionUid, generation: claim.generation, events: [aTurnEnd(n, turnId)] });

test('B19 J3 a run keeps the settings that it was given, whatever is saved later, and the next run has the new ones', async () => {
  await save({ harness: { max_model_request_bytes: 2_000_000 }, judge_model: 'acme/large' });
  const claim = await parts.claim('pin');
  for (const id of ['m1', 'm2']) await parts.inbox.admit(aSessionKey('pin'), aPrompt('pin', id));
  const first = await take(claim);
  assert.equal(first.settings?.budgets.max_model_request_bytes, 2_000_000);
  await save({ harness: { max_model_request_bytes: 1_500_000 }, judge_model: 'acme/small' });
  const again = await take(claim);
  assert.deepEqual([again.turnId, again.settings], [first.turnId, first.settings], 'the same turn, the same snapshot');
  await end(claim, 1, first.turnId);
  const second = await take(claim);
  assert.equal(second.settings?.budgets.max_model_request_bytes, 1_500_000);
  assert.equal(second.settings?.revision, (first.settings?.revision ?? 0) + 1);
  assert.deepEqual([first.settings?.roles.judge, second.settings?.roles.judge], ['acme/large', 'acme/small']);
  assert.notEqual(second.settings?.hash, first.settings?.hash);
});

test('J3 run.settings.pinned tells revision, hash and values, hidden, once per turn and before its start', async () => {
  const claim = await parts.claim('told');
  await parts.inbox.admit(aSessionKey('told'), aPrompt('told', 'm1', { model: 'acme/large' }));
  const turns = await Promise.all(Array.from({ length: 8 }, () => take(claim)));
  const [turn] = turns;
  assert.ok(turn?.settings);
  assert.equal(new Set(turns.map(({ settings }) => settings?.hash)).size, 1);
  await parts.append({
    sessionUid: 'told',
    generation: claim.generation,
    events: [anEvent(1, { type: 'turn.started', turnId: turn.turnId })],
  });
  const log = await parts.log('told');
  assert.deepEqual(
    log.map(({ seq, type, turn_id }) => [seq, type, turn_id]),
    [
      [1, 'run.settings.pinned', turn.turnId],
      [2, 'turn.started', turn.turnId],
    ],
  );
  const told = EVENT_DATA['run.settings.pinned'].parse(log[0]?.data);
  assert.deepEqual(told, turn.settings);
  assert.equal(told.hash, sha256(pinnedText(told)));
  assert.equal(told.roles.extraction, 'acme/large', 'the model of the run does the extraction');
  const [row] = await parts.rows<{ hidden: boolean }>(
    `select hidden from events where session_uid = 'told' and seq = 1`,
  );
  assert.equal(row?.hidden, true);
});

test('B19 equal settings have equal hashes in every session', async () => {
  const hashes = [];
  for (const uid of ['one', 'two']) {
    const claim = await parts.claim(uid);
    await parts.inbox.admit(aSessionKey(uid), aPrompt(uid, 'm1'));
    hashes.push((await take(claim)).settings?.hash);
  }
  assert.equal(hashes[0], hashes[1]);
});

test('B20 a turn of before pinning has no snapshot, so its run has the compiled budgets', async () => {
  const claim = await parts.claim('before');
  await parts.inbox.admit(aSessionKey('before'), aPrompt('before', 'm1'));
  await parts.take(claim);
  const again = await take(claim);
  assert.equal(again.settings, null);
  assert.deepEqual(budgetsOfRun(again.settings), COMPILED_BUDGETS);
  assert.deepEqual(await pinsOf('before'), []);
});

test('a pin that fails takes nothing: the prompt still waits and the log is as it was', async () => {
  const claim = await parts.claim('broken');
  await parts.inbox.admit(aSessionKey('broken'), aPrompt('broken', 'm1'));
  const broken: PinSettings = () => {
    throw new Error('the settings cannot be read');
  };
  await assert.rejects(parts.inbox.take(claim, turnIdOf, broken), /cannot be read/);
  assert.deepEqual(await parts.log('broken'), []);
  const turn = await take(claim);
  assert.equal(turn.turnId, turnIdOf('prm_broken_m1', 1));
  assert.equal((await pinsOf('broken')).length, 1);
});

test('B19 a prompt that runs again after its sandbox was lost is a new run with the settings of now', async () => {
  await parts.inbox.admit(aSessionKey('again'), aPrompt('again', 'm1'));
  const first = await take(await parts.claim('again', 'pod-1'));
  await save({ harness: { keep_groups_max: 20 } });
  const second = await take(await parts.claim('again', 'pod-2'));
  assert.notEqual(second.turnId, first.turnId);
  assert.deepEqual(
    [first.settings?.budgets.keep_groups_max, second.settings?.budgets.keep_groups_max],
    [COMPILED_BUDGETS.keep_groups_max, 20],
  );
  const pins = await pinsOf('again');
  assert.deepEqual(
    pins.map(({ turn_id, data }) => [turn_id, (data as RunSettings).budgets.keep_groups_max]),
    [
      [first.turnId, COMPILED_BUDGETS.keep_groups_max],
      [second.turnId, 20],
    ],
  );
});

test('of settings that are saved while turns are taken each snapshot is of one revision', async () => {
  const uids = Array.from({ length: 6 }, (_, n) => `race-${n}`);
  const claims = await Promise.all(
    uids.map(async (uid) => {
      const claim = await parts.claim(uid);
      await parts.inbox.admit(aSessionKey(uid), aPrompt(uid, 'm1'));
      return claim;
    }),
  );
  const [turns] = await Promise.all([
    Promise.all(claims.map(take)),
    (async () => {
      for (let n = 30; n < 40; n += 1) await save({ harness: { keep_groups_min: n, keep_groups_max: n } });
    })(),
  ]);
  const byRevision = Map.groupBy(turns, ({ settings }) => settings?.revision);
  for (const [revision, same] of byRevision) {
    assert.equal(new Set(same.map(({ settings }) => settings?.hash)).size, 1, `revision ${revision}`);
  }
  for (const { settings } of turns) {
    const { keep_groups_min: low, keep_groups_max: high } = settings?.budgets ?? COMPILED_BUDGETS;
    assert.ok(low === high || (low === 2 && high === 20), `${low} ${high}`);
  }
});

test('B13 B19 the gateway refuses above the ceiling of the run before it calls a provider, and a later change does not move it', async () => {
  const provider = await startScriptedProvider({ key: 'sk-rig', models: ['scripted-large'] });
  const rig = await startGatewayRig({
    maxRequestBytes: 2_097_152,
    ports: {
      ceilingOfRun: makeCeilingOfRun({
        findTurnSettings: async (sessionUid, turnId) =>
          (await firstRow(database.pool.query, getSessionTurnSettings(sessionUid, turnId)))?.settings,
        settings: api.app,
      }),
    },
  });
  try {
    rig.state.providers = [rigProvider('demo', provider.url, { secrets: [{ id: 'default', secret: 'sk-rig' }] })];
    const send = async (turnId: string | undefined, bytes: number): Promise<number> => {
      const empty = { model: 'demo/scripted-large', messages: [{ role: 'user', content: '' }] };
      const content = 'x'.repeat(bytes - JSON.stringify(empty).length);
      const body = JSON.stringify({ ...empty, messages: [{ role: 'user', content }] });
      assert.equal(body.length, bytes);
      const headers = turnId === undefined ? {} : { [TURN_HEADER]: turnId };
      return (await rig.post('/chat/completions', body, { authorization: 'Bearer bs_gate', ...headers })).status;
    };
    await save({ harness: { compaction_trigger_bytes: 10_000, max_model_request_bytes: 20_000 } });
    const claim = await parts.claim('gate');
    for (const id of ['m1', 'm2']) await parts.inbox.admit(aSessionKey('gate'), aPrompt('gate', id));
    const first = await take(claim);
    await save({ harness: { max_model_request_bytes: 30_000 } });
    const before = provider.requests.length;
    assert.equal(await send(first.turnId, 20_001), 413);
    assert.equal(provider.requests.length, before, 'no provider was called');
    assert.equal(await send(first.turnId, 20_000), 200);
    await end(claim, 1, first.turnId);
    const second = await take(claim);
    assert.deepEqual([await send(second.turnId, 30_000), await send(second.turnId, 30_001)], [200, 413]);
    assert.equal(await send('trn_of_another_session', 30_001), 413, 'a turn that is not its own counts as none');
    assert.equal(await send(undefined, 30_000), 200);
  } finally {
    await rig.close();
    await provider.close();
  }
});
