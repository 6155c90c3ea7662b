// The configuration that OpenCode is given: only known keys, agents as files, the rules by absolute path.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import type { HarnessSession } from '../contract/adapter.ts';
import { opencodeConfig, permissionOf } from './config-files.ts';

const anAgent = (agent: Partial<CompiledAgent> = {}): CompiledAgent => ({
  name: 'dev',
  mode: 'primary',
  prompt: 'You are dev. {env:HOME} {file:/etc/passwd}',
  tools: 'all',
  skills: 'all',
  ...agent,
});

const model = {
  name: 'acme/coder',
  contextWindowTokens: 100,
  maxOutputTokens: 10,
  input: ['text' as const],
  reasoning: false,
};

const aSession = (session: Partial<HarnessSession> = {}): HarnessSession => ({
  uid: 'u',
  title: 't',
  agent: 'dev',
  agents: [anAgent()],
  model,
  models: [model],
  unattended: false,
  ...session,
});

const configOf = (session: HarnessSession, rulesPath: string | null = '/workspace/AGENTS.md') =>
  opencodeConfig({
    session,
    modelBaseUrl: 'http://127.0.0.1:1/v1',
    environmentUrl: 'http://127.0.0.1:1/env',
    rulesPath,
    configDirectory: '/config/opencode',
  });

const fileOf = (session: HarnessSession, path: string): string =>
  configOf(session).files.find((file) => file.path === path)?.content ?? '';

describe('opencodeConfig', () => {
  it('A39 writes each agent as a file with known keys and its prompt as the body', () => {
    const agent = anAgent({
      description: 'says: "hi"\nthere',
      temperature: 0.2,
      topP: 0.9,
      steps: 5,
      model: 'acme/coder',
    });
    assert.equal(
      fileOf(aSession({ agents: [agent] }), 'agents/dev.md'),
      [
        '---',
        'description: "says: \\"hi\\"\\nthere"',
        'mode: "primary"',
        'model: "beeuni/acme/coder"',
        'temperature: 0.2',
        'top_p: 0.9',
        'steps: 5',
        'permission: {}',
        '---',
        'You are dev. {env:HOME} {file:/etc/passwd}',
        '',
      ].join('\n'),
    );
  });

  it('keeps prompts out of the JSON files, where OpenCode expands {env:…} and {file:…}', () => {
    const config = configOf(aSession());
    assert.ok(!fileOf(aSession(), 'opencode.json').includes('{file:'));
    assert.deepEqual(config.content.match(/\{(env|file):[^}]*\}/g), ['{env:BEEUNI_RELAY_TOKEN}']);
  });

  it('leaves out an agent whose name would be a path elsewhere', () => {
    for (const name of ['../evil', '/abs', 'a/../../b', '.hidden', 'a\u0000b', '']) {
      assert.deepEqual(configOf(aSession({ agents: [anAgent({ name })] })).agents, [], name);
    }
    assert.deepEqual(configOf(aSession({ agents: [anAgent({ name: 'team/dev' })] })).agents, ['team/dev']);
  });

  it('locks provider, sharing and updates in the content that no file overrides', () => {
    const content = JSON.parse(configOf(aSession()).content) as Record<string, unknown>;
    assert.deepEqual(content['enabled_providers'], ['beeuni']);
    assert.equal(content['share'], 'disabled');
    assert.equal(content['autoupdate'], false);
    assert.equal(content['model'], 'beeuni/acme/coder');
    assert.equal(content['default_agent'], 'dev');
  });

  it('names no model when none was resolved, and no default agent that is a subagent', () => {
    const content = JSON.parse(
      configOf(aSession({ model: null, models: [], agents: [anAgent({ mode: 'subagent' })] })).content,
    ) as Record<string, unknown>;
    assert.ok(!('model' in content));
    assert.ok(!('default_agent' in content));
  });

  it('drops the model of an agent that the session may not use', () => {
    assert.ok(!fileOf(aSession({ agents: [anAgent({ model: 'acme/other' })] }), 'agents/dev.md').includes('model'));
  });

  it('A123 denies the question tool in an unattended session', () => {
    assert.match(fileOf(aSession({ unattended: true }), 'opencode.json'), /"question": "deny"/);
    assert.doesNotMatch(fileOf(aSession(), 'opencode.json'), /"question"/);
  });

  it('A26 names the rules file by absolute path, and none when there is none', () => {
    assert.match(fileOf(aSession(), 'opencode.json'), /"\/workspace\/AGENTS.md"/);
    assert.match(configOf(aSession(), null).files[0]?.content ?? '', /"instructions": \[\]/);
  });
});

describe('permissionOf', () => {
  it('A102 compiles the skills grant into permission.skill', () => {
    assert.deepEqual(permissionOf(anAgent({ skills: 'none' })), { skill: 'deny' });
    assert.deepEqual(permissionOf(anAgent({ skills: ['a'], permission: { bash: 'ask' } })), {
      bash: 'ask',
      skill: { '*': 'deny', a: 'allow' },
    });
  });

  it('A101 writes a single action as the rule for everything', () => {
    assert.deepEqual(permissionOf(anAgent({ permission: 'deny' })), { '*': 'deny' });
  });
});
