// What a daemon is given as its next turn.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Session } from '#schema/resources/session.ts';
import { COMPILED_LIMITS } from '#schema/settings/budgets.ts';
import { type RunSettings, runSettings } from '#schema/settings/run-settings.ts';
import { turnIdOf } from './prompts.ts';
import type { PromptWithParts, Taking } from './session-records.ts';
import { makeTakeNextTurn } from './turns.ts';

const claim = { sessionUid: 's', generation: 3, podUid: 'p' };
const prompt = { id: 'prm_1', message_id: 'm1', parts: [{ type: 'text', text: 'hi' }], agent: null, model: null };

const taking = (taken: Taking, spec: Partial<Session['spec']> = {}) =>
  makeTakeNextTurn({
    take: async () => taken,
    limits: COMPILED_LIMITS,
    preparePin: async () => () => assert.fail('nothing is pinned here'),
    findSessionByUid: () => ({ spec }) as Session,
  })(claim);
const taken = (changes: Partial<PromptWithParts> = {}, settings: RunSettings | null = null): Taking => ({
  state: 'taken',
  turn: { turnId: 't1', prompt: { ...prompt, ...changes } as PromptWithParts, settings },
});

test('10-kubernetes §3 agent and model are those of the prompt, else those that the spec has now, else left to the claim', async () => {
  const spec = { agent: 'spec-agent', model: 'acme/spec' };
  const own = await taking(taken({ agent: 'own', model: 'acme/own' }), spec);
  assert.deepEqual([own?.agent, own?.model], ['own', 'acme/own']);
  const inherited = await taking(taken(), spec);
  assert.deepEqual([inherited?.agent, inherited?.model], ['spec-agent', 'acme/spec']);
  const none = await taking(taken());
  assert.deepEqual([none?.agent, none?.model], [null, null]);
});

test('B19 B20 B21 a turn brings the settings of its run beside the limits of now, and no settings when it was taken before settings were pinned', async () => {
  const settings = runSettings.parse({ revision: 4, hash: 'a'.repeat(64), budgets: {}, roles: {} });
  const turn = await taking(taken({}, settings));
  assert.deepEqual(turn?.settings, settings);
  assert.deepEqual(turn?.limits, COMPILED_LIMITS, 'B21 limits are told as they are now, beside the snapshot');
  assert.ok(!('limits' in settings));
  const old = await taking(taken());
  assert.ok(old !== null && !('settings' in old));
});

test('nothing to do is null, an older generation is told that it is superseded', async () => {
  assert.equal(await taking({ state: 'nothing' }), null);
  await assert.rejects(taking({ state: 'superseded' }), { code: 'superseded' });
});

test('the id of a turn depends on its prompt and attempt alone', () => {
  assert.equal(turnIdOf('prm_abc', 1), 'trn_abc_1');
  assert.notEqual(turnIdOf('prm_abc', 1), turnIdOf('prm_abc', 2));
});
