// Prompts that join a running turn, on a real Postgres: they never run by themselves once they joined, and wait in the queue
// with the reason when they could not.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { specMessageId, turnIdOf } from '#controlplane/app/prompts.ts';
import { freshDatabase } from '#test/support/postgres.ts';
import { anEvent, aPrompt, aSessionKey, aTurnEnd, storedSessions } from '#test/support/stored-sessions.ts';

const ANNA = 'user:anna';
const BERT = 'user:bert';

let parts: ReturnType<typeof storedSessions>;
before(async () => {
  parts = storedSessions((await freshDatabase({ poolSize: 8 })).pool);
});

const steer = (uid: string, messageId: string, sentBy: string | null = ANNA) =>
  parts.inbox.admit(aSessionKey(uid), aPrompt(uid, messageId, { delivery: 'steer', sentBy }));
const promptOf = async (uid: string, messageId: string) =>
  (
    await parts.rows<{ state: string; delivery: string; delivery_reason: string | null; turn_id: string | null }>(
      'select state, delivery, delivery_reason, turn_id from prompts where session_uid = $1 and message_id = $2',
      uid,
      messageId,
    )
  )[0];
const running = async (uid: string, messageId = 'm1', sentBy: string | null = ANNA) => {
  await parts.inbox.admit(aSessionKey(uid), aPrompt(uid, messageId, { sentBy }));
  const claim = await parts.claim(uid);
  const turnId = await parts.take(claim);
  await parts.append({
    sessionUid: uid,
    generation: claim.generation,
    events: [anEvent(1, { type: 'turn.started', turnId, data: {} })],
  });
  return { claim, turnId };
};

test('A154 a steer while no turn runs waits in the queue, and says why', async () => {
  const stored = await steer('idle', 'm1');
  assert.deepEqual(
    [stored?.prompt.delivery, stored?.prompt.delivery_reason, stored?.steerTurnId],
    ['queue', 'turn_ended', undefined],
  );
});

test("A154 a steer into the turn of somebody else's prompt waits in the queue, and says why; the sender's own joins", async () => {
  const { claim, turnId } = await running('shared');
  const others = await steer('shared', 'm2', BERT);
  assert.deepEqual(
    [others?.prompt.delivery, others?.prompt.delivery_reason, others?.steerTurnId],
    ['queue', 'not_prompter', undefined],
  );
  assert.equal((await steer('shared', 'm3'))?.steerTurnId, turnId);
  await parts.append({ sessionUid: 'shared', generation: claim.generation, events: [aTurnEnd(2, turnId)] });
  const next = await parts.take(claim);
  const prompt = await promptOf('shared', 'm2');
  assert.deepEqual(
    [prompt?.turn_id, prompt?.delivery_reason],
    [next, 'not_prompter'],
    'it runs in order, and still says why',
  );
  assert.equal((await steer('shared', 'm4', BERT))?.steerTurnId, next, 'and that turn is his');
});

test('A154 nobody is known to have sent the prompt of a spec, or one from before senders were stored: anybody may join', async () => {
  for (const [uid, messageId] of [
    ['of-spec', specMessageId('of-spec')],
    ['of-old', 'm1'],
  ] as const) {
    const { turnId } = await running(uid, messageId, null);
    assert.equal((await steer(uid, 'm2', BERT))?.steerTurnId, turnId);
  }
});

test('A146 a prompt that joined ends with its event, belongs to that turn and never runs again', async () => {
  const { claim, turnId } = await running('join');
  const stored = await steer('join', 'm2');
  assert.equal(stored?.steerTurnId, turnId);
  const joined = anEvent(2, {
    type: 'prompt.steered',
    turnId,
    data: { promptId: stored?.prompt.id ?? '', messageId: 'm2' },
  });
  await parts.append({ sessionUid: 'join', generation: claim.generation, events: [joined] });
  await parts.append({ sessionUid: 'join', generation: claim.generation, events: [joined] });
  assert.deepEqual(await promptOf('join', 'm2'), {
    state: 'ended',
    delivery: 'steer',
    delivery_reason: null,
    turn_id: turnId,
  });
  await parts.append({ sessionUid: 'join', generation: claim.generation, events: [aTurnEnd(3, turnId)] });
  assert.deepEqual(await parts.inbox.take(claim, turnIdOf), { state: 'nothing' });
});

test('A146 a prompt that nobody heard of runs as the next turn, and says why', async () => {
  const { claim, turnId } = await running('lost');
  const stored = await steer('lost', 'm2');
  await parts.append({ sessionUid: 'lost', generation: claim.generation, events: [aTurnEnd(2, turnId)] });
  const taking = await parts.inbox.take(claim, turnIdOf);
  assert.equal(taking.state === 'taken' && taking.turn.prompt.id, stored?.prompt.id);
  const prompt = await promptOf('lost', 'm2');
  assert.deepEqual([prompt?.state, prompt?.delivery, prompt?.delivery_reason], ['running', 'queue', 'turn_ended']);
});

test('a prompt that joined is not put back into the queue by an answer that comes too late', async () => {
  const { claim, turnId } = await running('late');
  const id = (await steer('late', 'm2'))?.prompt.id ?? '';
  const joined = anEvent(2, { type: 'prompt.steered', turnId, data: { promptId: id, messageId: 'm2' } });
  await parts.append({ sessionUid: 'late', generation: claim.generation, events: [joined] });
  assert.equal(await parts.inbox.queueSteered('late', id, 'turn_ended'), undefined);
  assert.equal((await promptOf('late', 'm2'))?.state, 'ended');
});

test('an event about a prompt of another session, or none, changes no prompt', async () => {
  const { claim, turnId } = await running('mine');
  const foreign = (await steer('idle', 'm9'))?.prompt.id ?? '';
  const events = [foreign, 'prm_nobody', 7].map((promptId, at) =>
    anEvent(2 + at, { type: 'prompt.steered', turnId, data: { promptId, messageId: 'm9' } }),
  );
  await parts.append({ sessionUid: 'mine', generation: claim.generation, events });
  assert.equal((await promptOf('idle', 'm9'))?.state, 'queued');
});
