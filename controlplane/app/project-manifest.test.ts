// What a session is started by, compiled from a manifest: tools, skills and folders as a daemon gets them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseYaml } from '#base/yaml.ts';
import { judgeManifestText } from './project-manifest.ts';
import type { ProjectConfig } from './project-ports.ts';

const AGENT = '---\nmode: primary\npermission:\n  websearch: ask\n---\nYou help.\n';

const compile = async (text: string): Promise<ProjectConfig> => {
  const judged = await judgeManifestText(
    'beeuni.yaml',
    `beeuni_version: 2\ndefault_agent: dev\n${text}`,
    'c'.repeat(40),
    async (paths) => new Map(paths.map((path) => [path, { kind: 'text' as const, text: AGENT }])),
    parseYaml,
  );
  assert.deepEqual(judged.verdict.errors, []);
  assert.ok(judged.config !== undefined);
  return judged.config;
};
const grantsOf = (config: ProjectConfig, name = 'dev') => {
  const agent = config.agents.find((each) => each.name === name);
  return [agent?.tools, agent?.skills, config.secrets[name]];
};

describe('compileConfig', () => {
  it('A44 loads all five tools of Beeuni without a key tools, and exactly the listed ones with it', async () => {
    const all = await compile('agents: {dev: {}}\n');
    assert.deepEqual(all.beeuniTools, ['web_search', 'image_search', 'scrape_webpage', 'memory', 'show']);
    assert.deepEqual(all.projectTools, []);
    const some = await compile(
      'tools: {memory: "beeuni:memory", deploy: ./tools/deploy.ts}\nagents: {dev: {tools: all}}\n',
    );
    assert.deepEqual(some.beeuniTools, ['memory']);
    assert.deepEqual(some.projectTools, [{ name: 'deploy', path: 'tools/deploy.ts' }]);
  });

  it('A92 grants nothing that is not named', async () => {
    assert.deepEqual(grantsOf(await compile('agents: {dev: {}}\n')), ['none', 'none', 'none']);
  });

  it('A40 compiles all, a list and exclude into names', async () => {
    const config = await compile(
      'tools: {memory: "beeuni:memory", show: "beeuni:show", deploy: tools/deploy.ts}\n' +
        'agents:\n  dev: {tools: {exclude: [show]}, skills: [cleaning], secrets: all}\n  ops: {tools: [deploy], skills: all}\n',
    );
    assert.deepEqual(grantsOf(config), [['memory', 'deploy'], ['cleaning'], 'all']);
    assert.deepEqual(grantsOf(config, 'ops'), [['deploy'], 'all', 'none']);
    assert.deepEqual(config.agents[0]?.permission, { websearch: 'ask' });
  });

  it('A102 leaves out an agent that is not enabled, with its grants', async () => {
    const config = await compile('agents: {dev: {tools: all}, off: {enabled: false, tools: all, secrets: all}}\n');
    assert.deepEqual(
      config.agents.map(({ name }) => name),
      ['dev'],
    );
    assert.deepEqual(Object.keys(config.secrets), ['dev']);
  });

  it('A72 A76 names the packages of the harness pi per agent: those of the project, its own, without what it excludes', async () => {
    const { piPackages } = await compile(
      [
        'harnesses: {pi: {packages: ["npm:left-pad@1.0.0", {source: ./packages/plan, prompts: []}]}}',
        'agents: {dev: {}, lean: {harnesses: {pi: {exclude: [left-pad], packages: [./packages/own]}}}}\n',
      ].join('\n'),
    );
    assert.deepEqual(piPackages?.['dev'], [
      { source: 'npm:left-pad@1.0.0' },
      { source: './packages/plan', prompts: [] },
    ]);
    assert.deepEqual(
      piPackages?.['lean']?.map(({ source }) => source),
      ['./packages/plan', './packages/own'],
    );
  });

  it('A69 names the folder of each harness, or none', async () => {
    assert.deepEqual((await compile('agents: {dev: {}}\n')).configDirs, { opencode: null, pi: null });
    assert.deepEqual(
      (await compile('opencode: {config_dir: conf/oc}\npi: {config_dir: ./conf/pi/}\nagents: {dev: {}}\n')).configDirs,
      { opencode: 'conf/oc', pi: './conf/pi/' },
    );
  });
});
