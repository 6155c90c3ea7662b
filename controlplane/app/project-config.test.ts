// What a claim says of a session whose agent is gone, and of a model.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { providerModel } from '#schema/settings/providers.ts';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import { claimedModel, withMove } from './project-config.ts';

const agent = (name: string, prompt: string): CompiledAgent => ({
  name,
  mode: 'primary',
  prompt,
  tools: 'all',
  skills: 'all',
});

test('A105 the agent that takes over a session is told so, and no other one', () => {
  const agents = [agent('dev', 'You are dev.\n'), agent('bare', ' '), agent('other', 'You are other.')];
  const [dev, , other] = withMove(agents, { from: 'gone', to: 'dev' });
  assert.match(
    dev?.prompt ?? '',
    /^You are dev\.\n\nThis session was started with the agent "gone", which .* no longer/,
  );
  assert.equal(other, agents[2]);
  assert.match(withMove(agents, { from: 'gone', to: 'bare' })[1]?.prompt ?? '', /^This session was started with/);
  assert.equal(withMove(agents, undefined), agents);
});

test('a harness is told of an answer of half the window at most', () => {
  const told = (sizes: Readonly<Record<string, number>>) => {
    const registry = { providers: [{ id: 'acme', models: [providerModel.parse({ id: 'm', ...sizes })] }] };
    const found = claimedModel('acme/m', registry);
    return [found?.contextWindowTokens, found?.maxOutputTokens];
  };
  assert.deepEqual(told({}), [128_000, 16_384]);
  assert.deepEqual(told({ context_window: 8_192 }), [8_192, 4_096]);
  assert.deepEqual(told({ context_window: 8_192, max_output: 8_192 }), [8_192, 4_096]);
  assert.deepEqual(told({ context_window: 8_192, max_output: 100 }), [8_192, 100]);
  assert.deepEqual(told({ context_window: 1 }), [1, 1]);
});
