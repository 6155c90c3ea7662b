// The configuration that OpenCode is given: only known keys, agents as files, the rules by absolute path.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import { noTools } from '#test/support/tool-host.ts';
import type { HarnessSession } from '../contract/adapter.ts';
import type { ToolHost } from '../contract/tools.ts';
import { opencodeConfig, permissionOf } from './config-files.ts';

/** Tools of the given names, visible to agents as the map says; to others all of them. */
const toolsOf = (
  names: readonly string[],
  visible: Readonly<Record<string, readonly string[]>> = {},
): Pick<ToolHost, 'specs' | 'visibleTo'> => ({
  specs: names.map((name) => ({ name, description: name, parameters: { type: 'object' } })),
  visibleTo: (agent) => new Set(visible[agent ?? 'dev'] ?? names),
});

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

const configOf = (
  session: HarnessSession,
  rulesPaths: readonly string[] = ['/config/opencode/rules/AGENTS.md'],
  changes: Partial<Pick<Parameters<typeof opencodeConfig>[0], 'tools' | 'project'>> = {},
) =>
  opencodeConfig({
    toolsUrl: 'http://127.0.0.1:1/beeuni/tools',
    judgeUrl: 'http://127.0.0.1:9/judge',
    tools: noTools,
    project: { settings: {}, files: [], ownTools: [] },
    ...changes,
    session,
    modelBaseUrl: 'http://127.0.0.1:1/v1',
    environmentUrl: 'http://127.0.0.1:1/env',
    rulesPaths,
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
        'permission: {"skill":"allow"}',
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

  it('A216 names the tiers of a model as its variants, and leaves them to OpenCode where the registry lists none', () => {
    const listed = { ...model, name: 'acme/deep', reasoning: true, variants: ['low', 'x-high'] };
    const { provider } = JSON.parse(configOf(aSession({ models: [model, listed] })).content);
    const { models } = provider.beeuni;
    assert.deepEqual(models['acme/deep'].variants, {
      low: { reasoningEffort: 'low' },
      'x-high': { reasoningEffort: 'x-high' },
    });
    assert.equal('variants' in models['acme/coder'], false);
  });

  it('A123 denies the question tool in an unattended session', () => {
    assert.match(fileOf(aSession({ unattended: true }), 'opencode.json'), /"question": "deny"/);
    assert.doesNotMatch(fileOf(aSession(), 'opencode.json'), /"question"/);
  });

  it('A54 names the rules by absolute path, and none when there are none', () => {
    assert.match(fileOf(aSession(), 'opencode.json'), /"\/config\/opencode\/rules\/AGENTS.md"/);
    assert.match(configOf(aSession(), []).files[0]?.content ?? '', /"instructions": \[\]/);
  });
});

describe('permissionOf', () => {
  it('A102 compiles the skills grant into permission.skill, and A129 leaves the managed ones in', () => {
    assert.deepEqual(permissionOf(anAgent({ skills: 'none' }), noTools), {
      skill: { '*': 'deny', 'beeuni-*': 'allow' },
    });
    assert.deepEqual(permissionOf(anAgent({ skills: ['a'], permission: { bash: 'ask' } }), noTools), {
      bash: 'ask',
      skill: { '*': 'deny', a: 'allow', 'beeuni-*': 'allow' },
    });
  });

  it('A129 hides a skill by a deny of the agent, also a managed one, and never widens the grant by an allow', () => {
    const rules = (skill: CompiledAgent['permission'], skills: CompiledAgent['skills']) =>
      permissionOf(anAgent({ skills, permission: skill }), noTools)['skill'];
    assert.equal(rules({ skill: 'deny' }, ['a']), 'deny');
    assert.equal(rules('deny', 'all'), 'deny');
    assert.deepEqual(rules({ skill: { 'beeuni-*': 'deny', b: 'allow' } }, ['a']), {
      '*': 'deny',
      a: 'allow',
      'beeuni-*': 'deny',
    });
  });

  it('A101 writes a single action as the rule for everything', () => {
    assert.deepEqual(permissionOf(anAgent({ permission: 'deny' }), noTools), { '*': 'deny', skill: 'deny' });
  });

  it('A117 writes patterns so that the longest comes last, where OpenCode takes it', () => {
    const rules = permissionOf(
      anAgent({ permission: { bash: { 'git push *': 'ask', 'git *': 'allow', '*': 'deny' } } }),
      noTools,
    );
    assert.deepEqual(Object.keys(rules['bash'] as object), ['*', 'git *', 'git push *']);
  });

  it('A40 denies each tool that the agent is not granted', () => {
    const tools = toolsOf(['memory', 'deploy'], { dev: ['deploy'] });
    const rules = permissionOf(anAgent(), tools);
    assert.deepEqual([rules['memory'], rules['deploy']], ['deny', undefined]);
  });

  it('A52 turns a rule to ask for a web tool into a denial, by capability or by name, and leaves memory to ask', () => {
    const tools = toolsOf(['web_search', 'image_search', 'scrape_webpage', 'memory']);
    const rules = permissionOf(
      anAgent({ permission: { websearch: 'ask', image_search: 'allow', webfetch: 'allow', memory: 'ask' } }),
      tools,
    );
    assert.deepEqual(
      ['web_search', 'image_search', 'scrape_webpage', 'memory'].map((name) => rules[name]),
      ['deny', 'allow', 'allow', 'ask'],
    );
    assert.equal(permissionOf(anAgent({ permission: 'ask' }), tools)['web_search'], 'deny');
  });
});

describe('what the project brings', () => {
  const plugin = (session: HarnessSession, ownTools: readonly string[]): string =>
    configOf(session, [], {
      tools: toolsOf(['web_search', 'show']),
      project: { settings: { snapshot: false }, files: [], ownTools },
    }).files.find(({ path }) => path === 'plugins/beeuni.js')?.content ?? '';

  it('A51 names the tools of the folder by absolute path, beside those of the host', () => {
    assert.match(plugin(aSession(), []), /"name":"web_search"/);
    assert.match(plugin(aSession(), ['web_search.ts']), /\["\/config\/opencode\/own-tools\/web_search\.ts"\]/);
  });

  it('A40 denies to agents of OpenCode itself what the agent of the session is not granted', () => {
    const file = configOf(aSession(), [], { tools: toolsOf(['web_search', 'show'], { dev: ['show'] }) }).files[0];
    const { permission } = JSON.parse(file?.content ?? '') as { permission: Record<string, unknown> };
    assert.deepEqual([permission['web_search'], permission['show']], ['deny', undefined]);
  });

  it('keeps its own rules and instructions above the settings of the project', () => {
    const file = configOf(aSession({ unattended: true }), [], {
      project: { settings: { permission: { question: 'allow' }, snapshot: false }, files: [], ownTools: [] },
    }).files[0];
    const written = JSON.parse(file?.content ?? '') as { permission: Record<string, unknown>; snapshot: boolean };
    assert.deepEqual([written.permission['question'], written.snapshot], ['deny', false]);
  });
});
