// What a claim says of a session whose agent is gone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import { withMove } from './project-config.ts';

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
