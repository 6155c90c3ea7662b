// Which calls of a subagent the agent above it allows, denies or wants asked.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HumanRequest } from '#daemon/harness/contract/adapter.ts';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import { makeJudge } from './child-rules.ts';

const agent = (name: string, permission: NonNullable<CompiledAgent['permission']>): CompiledAgent => ({
  name,
  mode: 'all',
  prompt: '',
  tools: 'all',
  skills: 'all',
  permission,
});

const make = () => {
  const asked: HumanRequest[] = [];
  const judge = makeJudge({
    agents: [
      agent('dev', { bash: { '*': 'allow', 'rm *': 'ask', 'sudo *': 'deny' }, edit: { 'locked/*': 'deny' } }),
      agent('free', {}),
      agent('careful', { bash: 'ask' }),
    ],
    agent: 'dev',
    workspace: '/workspace',
    skills: [],
    tools: [{ name: 'memory' }],
    ask: async (request) => {
      asked.push(request);
      return { kind: 'permission', reply: 'reject', message: 'no' };
    },
  });
  const call = async (
    tool: string,
    input: Record<string, unknown>,
    who: string | null,
    above: string | null = null,
  ) => {
    const ids = { threadId: 'ses_child', callId: 'c' };
    const verdict = await judge(
      { tool, arguments: input, agent: who, parentAgent: above, ...ids },
      new AbortController().signal,
    );
    return verdict.allowed;
  };
  return { asked, call };
};

test('J7 A127 a subagent may not do what the agent of the session may not do, whatever the own rules say', async () => {
  const { call, asked } = make();
  assert.equal(await call('bash', { command: 'true; sudo rm x' }, 'free'), false);
  assert.equal(await call('write', { filePath: 'locked/a' }, 'free'), false);
  assert.equal(await call('write', { filePath: 'open/a' }, 'free'), true);
  assert.equal(await call('bash', { command: 'sudo rm x' }, 'careful', 'free'), true, 'another agent is above it');
  assert.deepEqual(asked, []);
});

test('J7 A127 what only the agent above wants asked is asked here, what both want asked by the harness', async () => {
  const { call, asked } = make();
  assert.equal(await call('bash', { command: 'rm x' }, 'general'), false);
  assert.deepEqual(
    asked.map(({ threadId, data }) => [threadId, data['patterns']]),
    [['ses_child', ['rm x']]],
  );
  assert.equal(await call('bash', { command: 'rm x' }, 'careful'), true);
  assert.equal(asked.length, 1);
});
