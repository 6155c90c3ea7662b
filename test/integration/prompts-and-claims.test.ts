// The inbox and the claim on a real Postgres: exactly once under races, healing, fence, close, removal.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { InvalidError } from '#base/errors.ts';
import { turnIdOf } from '#controlplane/app/prompts.ts';
import { freshDatabase } from '#test/support/postgres.ts';
import { AT, anEvent, aPrompt, aSessionKey, aTurnEnd, storedSessions } from '#test/support/stored-sessions.ts';

let parts: ReturnType<typeof storedSessions>;
before(async () => {
  parts = storedSessions((await freshDatabase({ poolSize: 16 })).pool);
});

const promptsOf = (uid: string) =>
  parts.rows<{ id: string; state: string; attempt: number; turn_id: string | null; outcome: string | null }>(
    'select id, state, attempt, turn_id, outcome from prompts where session_uid = $1 order by ordinal',
    uid,
  );
const turnsOf = (uid: string) =>
  parts.rows<{ id: string; outcome: string | null; final: boolean; code: string | null }>(
    'select id, outcome, final, code from turns where session_uid = $1 order by taken_at',
    uid,
  );

test('A145 the same message id is the same prompt, also when twenty callers send it at once', async () => {
  const sent = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      parts.inbox.admit(aSessionKey('same'), aPrompt('same', 'm1', { id: `prm_${index}` })),
    ),
  );
  assert.equal(sent.filter((stored) => stored?.created).length, 1);
  assert.equal(new Set(sent.map((stored) => stored?.prompt.id)).size, 1);
  assert.equal((await promptsOf('same')).length, 1);
});

test('a message id that comes back with other content is refused, and the first prompt stays', async () => {
  const key = aSessionKey('reused');
  await parts.inbox.admit(key, aPrompt('reused', 'm1'));
  const others = [
    { parts: [{ type: 'text' as const, text: 'something else' }] },
    { agent: 'review' },
    { model: 'a/b' },
  ];
  for (const other of others) {
    await assert.rejects(
      parts.inbox.admit(key, aPrompt('reused', 'm1', { id: 'prm_other', ...other })),
      (error: unknown) =>
        error instanceof InvalidError && error.code === 'idempotency_key_reused' && error.status === 422,
    );
  }
  const again = await parts.inbox.admit(key, aPrompt('reused', 'm1', { id: 'prm_again' }));
  assert.equal(again?.created, false);
});

test('20-control-plane §9 two takers at once get the same turn, and prompts run in their order', async () => {
  const claim = await parts.claim('order');
  for (const id of ['m1', 'm2', 'm3']) await parts.inbox.admit(aSessionKey('order'), aPrompt('order', id));
  const ran: string[] = [];
  for (let n = 1; n <= 3; n += 1) {
    const turns = await Promise.all(Array.from({ length: 8 }, () => parts.take(claim)));
    assert.equal(new Set(turns).size, 1);
    ran.push(turns[0] ?? '');
    await parts.append({
      sessionUid: 'order',
      generation: claim.generation,
      events: [aTurnEnd(n, turns[0] ?? '')],
    });
  }
  assert.deepEqual(
    ran,
    ['m1', 'm2', 'm3'].map((id) => turnIdOf(`prm_order_${id}`, 1)),
  );
  assert.deepEqual(await parts.inbox.take(claim, turnIdOf), { state: 'nothing' });
});

test('an interrupt runs before what waits and asks the running turn to end', async () => {
  const claim = await parts.claim('interrupt');
  for (const id of ['m1', 'm2']) await parts.inbox.admit(aSessionKey('interrupt'), aPrompt('interrupt', id));
  const running = await parts.take(claim);
  const stored = await parts.inbox.admit(
    aSessionKey('interrupt'),
    aPrompt('interrupt', 'm3', { delivery: 'interrupt' }),
  );
  assert.equal(stored?.abortTurnId, running);
  const errands = await parts.health.errands('interrupt', claim.podUid);
  assert.deepEqual(errands, { prompts_waiting: true, abort_turn_id: running, digest: null, answers: [] });
  const { generation } = claim;
  const aborted = aTurnEnd(1, running, { outcome: 'Aborted', code: 'aborted' });
  await parts.append({ sessionUid: 'interrupt', generation, events: [aborted] });
  assert.equal(await parts.take(claim), turnIdOf('prm_interrupt_m3', 1));
  const [first] = await promptsOf('interrupt');
  assert.deepEqual([first?.state, first?.outcome], ['ended', 'Aborted']);
});

test('a withdrawn prompt never runs, one that runs cannot be withdrawn', async () => {
  const claim = await parts.claim('withdraw');
  for (const id of ['m1', 'm2']) await parts.inbox.admit(aSessionKey('withdraw'), aPrompt('withdraw', id));
  await parts.take(claim);
  assert.equal(await parts.inbox.withdraw('withdraw', 'prm_withdraw_m1'), false);
  assert.equal(await parts.inbox.withdraw('withdraw', 'prm_withdraw_m2'), true);
  const states = (await promptsOf('withdraw')).map((prompt) => prompt.state);
  assert.deepEqual(states, ['running', 'withdrawn']);
});

test('D7 of ten claims at once each gets its own generation, and only the newest may take turns', async () => {
  await parts.inbox.admit(aSessionKey('race'), aPrompt('race', 'm1'));
  const claims = await Promise.all(Array.from({ length: 10 }, (_, index) => parts.claim('race', `pod-${index}`)));
  const generations = claims.map((claim) => claim.generation).sort((a, b) => a - b);
  assert.deepEqual(
    generations,
    Array.from({ length: 10 }, (_, index) => index + 1),
  );
  const takings = await Promise.all(claims.map((claim) => parts.inbox.take(claim, turnIdOf)));
  const states = takings.map((taking) => taking.state).sort();
  assert.deepEqual(states, [...Array.from({ length: 9 }, () => 'superseded'), 'taken']);
});

test('A155 D17 a lost sandbox ends its turn once, the prompt runs once more, then ends with its cause', async () => {
  await parts.inbox.admit(aSessionKey('heal'), aPrompt('heal', 'm1'));
  const first = await parts.claim('heal', 'pod-1');
  const turn1 = await parts.take(first);
  await parts.append({
    sessionUid: 'heal',
    generation: first.generation,
    events: [anEvent(1, { type: 'turn.started', turnId: turn1 })],
  });

  const second = await parts.claim('heal', 'pod-2');
  assert.deepEqual(await turnsOf('heal'), [{ id: turn1, outcome: 'Interrupted', final: false, code: 'sandbox_lost' }]);
  const turn2 = await parts.take(second);
  assert.equal(turn2, turnIdOf('prm_heal_m1', 2));

  await parts.ends.podGone('heal', 'pod-2', AT);
  await parts.ends.podGone('heal', 'pod-2', AT);
  const third = await parts.claim('heal', 'pod-3');
  assert.deepEqual(await parts.inbox.take(third, turnIdOf), { state: 'nothing' });
  const [prompt] = await promptsOf('heal');
  assert.deepEqual([prompt?.state, prompt?.outcome, prompt?.attempt], ['ended', 'Interrupted', 2]);
  const ends = (await parts.log('heal')).filter((event) => event.type === 'turn.ended');
  assert.deepEqual(
    ends.map((event) => [event.turn_id, event.data['outcome'], event.data['code']]),
    [
      [turn1, 'Interrupted', 'sandbox_lost'],
      [turn2, 'Interrupted', 'sandbox_lost'],
    ],
  );
});

test('a daemon that ends its turn after the claim of another one changes nothing', async () => {
  await parts.inbox.admit(aSessionKey('late'), aPrompt('late', 'm1'));
  const old = await parts.claim('late', 'pod-1');
  const turn = await parts.take(old);
  await parts.claim('late', 'pod-2');
  const late = parts.append({ sessionUid: 'late', generation: old.generation, events: [aTurnEnd(1, turn)] });
  await assert.rejects(late, { code: 'superseded' });
  const [prompt] = await promptsOf('late');
  assert.equal(prompt?.state, 'queued');
});

test('10-kubernetes §6 a stop with turn none is refused while a prompt waits or runs, and is the fence when idle', async () => {
  const claim = await parts.claim('fence');
  await parts.inbox.admit(aSessionKey('fence'), aPrompt('fence', 'm1'));
  assert.deepEqual(await parts.ends.fence('fence', claim.podUid, 'none'), { state: 'working' });
  const turn = await parts.take(claim);
  assert.deepEqual(await parts.ends.fence('fence', claim.podUid, 'none'), { state: 'working' });
  await parts.append({ sessionUid: 'fence', generation: claim.generation, events: [aTurnEnd(1, turn)] });
  const fenced = { state: 'fenced', openTurnId: undefined };
  assert.deepEqual(await parts.ends.fence('fence', claim.podUid, 'none'), fenced);
  await parts.inbox.admit(aSessionKey('fence'), aPrompt('fence', 'm2'));
  assert.deepEqual(await parts.inbox.take(claim, turnIdOf), { state: 'nothing' });
  assert.deepEqual(await parts.ends.fence('fence', claim.podUid, 'none'), fenced);
  const next = await parts.claim('fence', 'pod-next');
  assert.equal(await parts.take(next), turnIdOf('prm_fence_m2', 1));
});

test('of a stop for idleness and a prompt at the same time one wins: the prompt waits, or the stop is refused', async () => {
  for (let round = 0; round < 10; round += 1) {
    const uid = `idle-${round}`;
    const claim = await parts.claim(uid);
    const [fencing] = await Promise.all([
      parts.ends.fence(uid, claim.podUid, 'none'),
      parts.inbox.admit(aSessionKey(uid), aPrompt(uid, 'm1')),
    ]);
    const taking = await parts.inbox.take(claim, turnIdOf);
    assert.equal(taking.state, fencing.state === 'fenced' ? 'nothing' : 'taken');
  }
});

test('a stop with abort makes the end of the turn final, whoever writes it', async () => {
  await parts.inbox.admit(aSessionKey('abort'), aPrompt('abort', 'm1'));
  const claim = await parts.claim('abort');
  const turn = await parts.take(claim);
  const fencing = await parts.ends.fence('abort', claim.podUid, 'abort');
  assert.deepEqual(fencing, { state: 'fenced', openTurnId: turn });
  await parts.ends.podGone('abort', claim.podUid, AT);
  const [prompt] = await promptsOf('abort');
  assert.deepEqual([prompt?.state, prompt?.outcome], ['ended', 'Aborted']);
});

test('a pod that is gone loses its credentials, and a pod of before takes nothing from the present one', async () => {
  const old = await parts.claim('gone', 'pod-1');
  const present = await parts.claim('gone', 'pod-2');
  await parts.ends.podGone('gone', old.podUid, AT);
  const left = await parts.rows<{ pod_uid: string }>(`select pod_uid from credentials where session_uid = 'gone'`);
  assert.deepEqual(left, [{ pod_uid: present.podUid }]);
  const [session] = await parts.rows<{ pod_uid: string }>(`select pod_uid from sessions where uid = 'gone'`);
  assert.equal(session?.pod_uid, present.podUid);
});

test('10-kubernetes §4 close revokes credentials and ends the turn; removal leaves no row of the session', async () => {
  await parts.inbox.admit(aSessionKey('close'), aPrompt('close', 'm1'));
  await parts.inbox.admit(aSessionKey('close'), aPrompt('close', 'm2'));
  const claim = await parts.claim('close');
  const turn = await parts.take(claim);
  const { generation } = claim;
  await parts.append({ sessionUid: 'close', generation, events: [anEvent(1), anEvent(2)] });
  await parts.ends.close('close', AT);
  await parts.ends.close('close', AT);

  assert.deepEqual(await parts.rows(`select 1 from credentials where session_uid = 'close'`), []);
  const log = await parts.log('close');
  assert.deepEqual(
    log.filter((event) => event.type === 'turn.ended').map((event) => event.turn_id),
    [turn],
  );
  assert.deepEqual(
    (await promptsOf('close')).map((prompt) => prompt.state),
    ['ended', 'withdrawn'],
  );
  await assert.rejects(parts.append({ sessionUid: 'close', generation, events: [anEvent(3)] }), { code: 'superseded' });
  assert.equal(await parts.inbox.admit(aSessionKey('close'), aPrompt('close', 'm3')), undefined);
  await assert.rejects(parts.claim('close', 'pod-late'), /is closed/);

  await parts.ends.remove('close', AT);
  await parts.ends.remove('close', AT);
  for (const table of ['prompts', 'turns', 'events', 'event_blobs', 'credentials', 'health_reports']) {
    assert.deepEqual(await parts.rows(`select 1 from ${table} where session_uid = 'close'`), [], table);
  }
  assert.deepEqual(await parts.rows(`select 1 from sessions where uid = 'close'`), []);
  const [fact] = await parts.rows<{ kind: string }>(`select kind from facts where uid = 'close'`);
  assert.equal(fact?.kind, 'gone');
});

test('A105 a session that was moved to another agent says so once for each move', async () => {
  const claimAs = (agentRepoint: Readonly<{ from: string; to: string }> | undefined) =>
    parts.claim('moved', 'pod-1', agentRepoint);
  const moves = async () => (await parts.log('moved')).filter(({ type }) => type === 'agent.repoint');
  await claimAs(undefined);
  await claimAs({ from: 'reviewer', to: 'dev' });
  await claimAs({ from: 'reviewer', to: 'dev' });
  assert.deepEqual(
    (await moves()).map(({ data }) => data),
    [{ from: 'reviewer', to: 'dev', applied: true, reason: 'not_declared' }],
  );
  await claimAs(undefined);
  await claimAs({ from: 'reviewer', to: 'dev' });
  assert.equal((await moves()).length, 2);
});
