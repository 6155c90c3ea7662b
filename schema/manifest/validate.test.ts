import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseYaml } from '#base/yaml.ts';
import { BEEUNI_TOOLS } from './manifest.ts';
import type { ManifestProblem } from './source.ts';
import { filesNamedBy, validateManifest } from './validate.ts';

type Files = Readonly<Record<string, string>>;
const DEV = '---\ndescription: writes code\nmodel: acme/coder-large\n---\nYou write code.\n';
const MINIMAL = 'beeuni_version: 2\ndefault_agent: dev\nagents:\n  dev:\n    tools: all\n';

function validate(text: string | undefined, files: Files = { 'agents/dev.md': DEV }, path = 'beeuni.yaml') {
  return validateManifest({
    path,
    text,
    readFile: (file) => (Object.hasOwn(files, file) ? files[file] : undefined),
    parseYaml,
  });
}
const line = ({ path, line: number, column, code, message }: ManifestProblem) =>
  `${path}:${number}:${column} ${code} ${message}`;
const errorsOf = (text: string, files?: Files) => validate(text, files).errors.map(line);
const warningsOf = (text: string, files?: Files) => validate(text, files).warnings.map(line);

test('A86 the smallest manifest is valid and has the agent with its file', () => {
  const { reason, version, manifest, errors, warnings } = validate(MINIMAL);
  assert.deepEqual([reason, version, errors, warnings], ['Valid', 2, [], []]);
  assert.equal(manifest?.defaultAgent, 'dev');
  const [agent] = manifest?.agents ?? [];
  assert.equal(agent?.prompt, 'You write code.');
  assert.equal(agent?.model, 'acme/coder-large');
  assert.deepEqual([agent?.tools, agent?.skills, agent?.secrets, agent?.mode], ['all', 'none', 'none', 'all']);
  assert.deepEqual(manifest?.models, [{ name: 'acme/coder-large', usedBy: 'agents/dev.md' }]);
});

test('a missing manifest, broken YAML, a huge text and a newer version each have their reason', () => {
  assert.deepEqual(validate(undefined).errors.map(line), [
    'beeuni.yaml:1:1 Missing the repository has no file beeuni.yaml',
  ]);
  assert.deepEqual(errorsOf('a: 1\na: 2\n'), ['beeuni.yaml:2:1 SyntaxError map keys must be unique']);
  assert.equal(validate('x'.repeat(1024 * 1024 + 1)).reason, 'TooLarge');
  const newer = validate('beeuni_version: 3\n');
  assert.equal(newer.version, 3);
  assert.deepEqual(newer.errors.map(line), [
    'beeuni.yaml:1:17 VersionTooNew beeuni_version: 3 is above 2, the newest version that this installation reads',
  ]);
  assert.equal(validate(MINIMAL, {}, 'beeuni.toml').errors[0]?.message, 'a manifest is YAML; name a .yaml file');
  assert.equal(errorsOf('- a\n')[0], 'beeuni.yaml:1:1 SchemaError the manifest must be a map, not a list');
  assert.equal(errorsOf('')[0], 'beeuni.yaml:1:1 SchemaError the manifest must be a map, not nothing');
});

test('A8 A84 a manifest of the old form is refused, so that it can set no runtime', () => {
  assert.deepEqual(validate('runtime = "pi"\n', {}, 'beeuni.toml').errors.map(line), [
    'beeuni.toml:1:1 SchemaError a manifest is YAML; name a .yaml file',
  ]);
  const { manifest, errors } = validate(`${MINIMAL.replace('beeuni_version: 2', 'beeuni_version: 1')}runtime: pi\n`);
  assert.equal(manifest, undefined);
  assert.match(errors.map(line).join('\n'), /beeuni_version: must be 2/);
});

test('A86 each required key is named when it is missing', () => {
  assert.deepEqual(errorsOf('runtime: pi\n'), [
    'beeuni.yaml:1:1 SchemaError beeuni_version: is required',
    'beeuni.yaml:1:1 SchemaError default_agent: is required',
    'beeuni.yaml:1:1 SchemaError agents: is required',
  ]);
  assert.deepEqual(errorsOf('beeuni_version: 2\ndefault_agent: dev\nagents: {}\n'), [
    'beeuni.yaml:2:16 SchemaError default_agent: no agent is named "dev"',
    'beeuni.yaml:3:9 SchemaError agents: needs at least one agent',
  ]);
});

test('A13 a runtime that this version does not run is valid, with a warning that says so', () => {
  assert.deepEqual(errorsOf(`${MINIMAL}runtime: beaver\n`), []);
  assert.deepEqual(warningsOf(`${MINIMAL}runtime: beaver\n`), [
    'beeuni.yaml:6:10 SchemaError runtime: this version does not run beaver yet: sessions fail at their start',
  ]);
  assert.deepEqual(warningsOf(`${MINIMAL}runtime: pi\n`), []);
});

test('A13 another runtime is an error that names the allowed ones', () => {
  assert.deepEqual(errorsOf(`${MINIMAL}runtime: opencod\n`), [
    'beeuni.yaml:6:10 SchemaError runtime: must be one of opencode, pi, beaver; did you mean "opencode"?',
  ]);
});

test('the default agent is declared, enabled and no subagent', () => {
  const text = (agent: string) => MINIMAL.replace('default_agent: dev', `default_agent: ${agent}`);
  assert.deepEqual(errorsOf(text('dve')), [
    'beeuni.yaml:2:16 SchemaError default_agent: no agent is named "dve"; did you mean "dev"?',
  ]);
  assert.deepEqual(errorsOf(MINIMAL.replace('tools: all', 'enabled: false')), [
    'beeuni.yaml:2:16 SchemaError default_agent: the agent "dev" is disabled',
  ]);
  assert.deepEqual(errorsOf(MINIMAL, { 'agents/dev.md': '---\nmode: subagent\n---\n' }), [
    'beeuni.yaml:2:16 SchemaError default_agent: the agent "dev" is a subagent and runs no session',
  ]);
});

test('A91 an agent file is looked for under its default name, then the older one, then reported', () => {
  assert.equal(validate(MINIMAL, { '.beeuni/opencode/agents/dev.md': DEV }).reason, 'Valid');
  assert.deepEqual(errorsOf(MINIMAL, {}), [
    'beeuni.yaml:4:3 SchemaError agents.dev: the repository has no file agents/dev.md; write it, or name another with file',
  ]);
  const named = MINIMAL.replace('tools: all', 'file: ./team/dev.md');
  assert.equal(validate(named, { 'team/dev.md': DEV }).reason, 'Valid');
  assert.deepEqual(errorsOf(named, {}), [
    'beeuni.yaml:5:11 SchemaError agents.dev.file: the repository has no file team/dev.md',
  ]);
  assert.deepEqual(filesNamedBy(named, parseYaml), ['team/dev.md']);
  assert.deepEqual(filesNamedBy(MINIMAL, parseYaml), ['agents/dev.md', '.beeuni/opencode/agents/dev.md']);
  assert.equal(
    errorsOf(MINIMAL.replace('tools: all', 'file: ../dev.md'))[0],
    'beeuni.yaml:5:11 SchemaError agents.dev.file: must be a relative path inside the repository',
  );
});

test('A92 an unclear grant grants nothing and is warned about', () => {
  const text = MINIMAL.replace('tools: all', 'secrets: al\n    skills: [review]');
  assert.deepEqual(warningsOf(text), [
    'beeuni.yaml:5:14 SchemaError agents.dev.secrets: "al" is not all, none or a list, so nothing is granted',
  ]);
  const [agent] = validate(text).manifest?.agents ?? [];
  assert.deepEqual([agent?.secrets, agent?.skills], ['none', ['review']]);
});

test('A92 A93 keys of an agent that belong elsewhere are errors that say where', () => {
  assert.deepEqual(errorsOf(MINIMAL.replace('tools: all', 'model: acme/x\n    env: [A]\n    secrest: all')), [
    'beeuni.yaml:5:5 SchemaError agents.dev.model: belongs into the frontmatter of agents/dev.md',
    'beeuni.yaml:6:5 SchemaError agents.dev.env: is not a key of an agent; grant secrets with secrets',
    'beeuni.yaml:7:5 SchemaError agents.dev.secrest: unknown key "secrest"; did you mean "secrets"?',
  ]);
});

test('A84 unknown top-level keys are ignored with a warning, and A95 A97 imports and subprojects are refused', () => {
  assert.deepEqual(warningsOf(`${MINIMAL}sandboxes: {}\nconstructor: 1\n`), [
    'beeuni.yaml:6:1 SchemaError sandboxes: unknown key is ignored; did you mean "sandbox"?',
    'beeuni.yaml:7:1 SchemaError constructor: unknown key is ignored',
  ]);
  assert.deepEqual(errorsOf(`${MINIMAL}imports: [a.yaml]\n`), [
    'beeuni.yaml:6:1 SchemaError imports: a manifest is one file here; move the imported entries into it',
  ]);
});

test('A87 A88 names are checked where they stand', () => {
  assert.deepEqual(errorsOf(`${MINIMAL}env:\n  required: [ok]\n`), [
    'beeuni.yaml:7:14 SchemaError env.required[0]: must be 1 to 64 upper-case letters, digits and underscores, with no digit first',
  ]);
  const [error] = validate(MINIMAL.replace('  dev:', '  Dev:')).errors;
  assert.match(error?.message ?? '', /^agents\.Dev: is not a valid name: must be 1 to 128 lower-case letters/);
  assert.deepEqual([error?.line, error?.column], [4, 3]);
});

test('A89 templates: reserved and repeated names, pins, bounds and what is ignored', () => {
  const text = `${MINIMAL}sandbox:
  default: bg
  templates:
    - {slug: default, image: img}
    - {slug: big, image: 'img:1', cpu: 64, memory: 4GiB, disk: 20}
    - {slug: big, image: 'img:1', cpu: 0.5, memory: lots}
    - {slug: built, dockerfile: Dockerfile}
    - {slug: none}
    - {slug: odd, image: 'img:1', gpu: 1}
`;
  assert.deepEqual(errorsOf(text), [
    'beeuni.yaml:7:12 SchemaError sandbox.default: no sandbox template is named "bg"; did you mean "big"?',
    'beeuni.yaml:9:14 SchemaError sandbox.templates[0].slug: "default" is the template of the platform; choose another name',
    'beeuni.yaml:9:30 SchemaError sandbox.templates[0].image: needs a tag or a digest',
    'beeuni.yaml:11:14 SchemaError sandbox.templates[2].slug: another template has the name "big"',
    'beeuni.yaml:11:40 SchemaError sandbox.templates[2].cpu: must be at least 1 cores',
    'beeuni.yaml:11:53 SchemaError sandbox.templates[2].memory: must be a number of GiB, for example 4 or 4Gi',
    'beeuni.yaml:12:21 SchemaError sandbox.templates[3].dockerfile: images are not built from a Dockerfile in the cluster; build one and name it with image',
    'beeuni.yaml:13:7 SchemaError sandbox.templates[4]: needs image',
  ]);
  assert.deepEqual(warningsOf(text), [
    'beeuni.yaml:10:40 SchemaError sandbox.templates[1].cpu: is above 32 cores; 32 is used',
    'beeuni.yaml:14:35 SchemaError sandbox.templates[5].gpu: is ignored: sandboxes have no GPU',
  ]);
});

test('A90 an agent has its own template, else that of sandbox.default, else that of the platform', () => {
  const text = (agent: string, sandbox: string) =>
    `${MINIMAL.replace('tools: all', agent)}sandbox:\n  ${sandbox}\n  templates: [{slug: big, image: 'i:1', memory: 4, cpu: 2}, {slug: small, image: 'i:2'}]\n`;
  const templateOf = (yaml: string) => validate(yaml).manifest?.agents[0]?.template;
  assert.equal(templateOf(text('sandbox: small', 'default: big')), 'small');
  assert.equal(templateOf(text('skills: all', 'default: big')), 'big');
  assert.equal(templateOf(text('sandbox: default', 'default: big')), undefined);
  assert.deepEqual(validate(text('skills: all', 'default: big')).manifest?.templates[0], {
    slug: 'big',
    name: undefined,
    image: 'i:1',
    cpu: '2',
    memory: '4Gi',
    disk: undefined,
  });
});

test('A44 a manifest without tools gets all five, with the key only those that it lists', () => {
  assert.deepEqual(validate(MINIMAL).manifest?.beeuniTools, BEEUNI_TOOLS);
  const { manifest } = validate(`${MINIMAL}tools:\n  memory: beeuni:memory\n  deploy: ./tools/deploy.ts\n`);
  assert.deepEqual(manifest?.beeuniTools, ['memory']);
  assert.deepEqual(manifest?.projectTools, [{ name: 'deploy', path: 'tools/deploy.ts' }]);
  assert.deepEqual(warningsOf(`${MINIMAL}tools:\n  deploy: tools/deploy.ts\n`), [
    'beeuni.yaml:6:1 SchemaError tools: lists no Beeuni tool, so none is loaded',
  ]);
});

test('A94 tool names and sources are checked', () => {
  const text = `${MINIMAL}tools:\n  bash: tools/bash.ts\n  show: beeuni:shwo\n  memory: beeuni:show\n  web_search: tools/search.ts\n  deploy: tools/deploy.py\n  out: ../out.ts\n`;
  assert.deepEqual(errorsOf(text), [
    'beeuni.yaml:7:9 SchemaError tools.bash: "bash" is a tool of the harness; choose another name',
    'beeuni.yaml:8:9 SchemaError tools.show: there is no Beeuni tool "shwo"; did you mean "show"?',
    'beeuni.yaml:9:11 SchemaError tools.memory: must be beeuni:memory or the path of a module',
    'beeuni.yaml:10:15 SchemaError tools.web_search: "web_search" is the name of a Beeuni tool; choose another name',
    'beeuni.yaml:11:11 SchemaError tools.deploy: must end in .ts, .js, .mts, .mjs, .cts or .cjs',
    'beeuni.yaml:12:8 SchemaError tools.out: must be a relative path inside the repository',
  ]);
});

test('A40 A94 an agent is granted tools by list or exclusion, and unknown ones are warned about', () => {
  const tools = 'tools:\n  memory: beeuni:memory\n  deploy: tools/deploy.ts\n';
  const grantOf = (grant: string) => validate(`${MINIMAL.replace('all', grant)}${tools}`).manifest?.agents[0]?.tools;
  assert.deepEqual(grantOf('{exclude: [memory]}'), ['deploy']);
  assert.deepEqual(grantOf('none'), 'none');
  assert.deepEqual(warningsOf(`${MINIMAL.replace('all', '[show, deplyo]')}${tools}`), [
    'beeuni.yaml:5:13 SchemaError agents.dev.tools[0]: the Beeuni tool "show" is not loaded; add it to tools',
    'beeuni.yaml:5:19 SchemaError agents.dev.tools[1]: no tool is named "deplyo"; did you mean "deploy"?',
  ]);
});

test('A74 A75 A76 packages are exact pins or paths, and agents add and drop them', () => {
  const text = (agent: string, packages: string) =>
    `${MINIMAL.replace('tools: all', agent)}harnesses: {pi: {packages: ${packages}}}\n`;
  const bad = text('tools: all', "['npm:a@^1.0.0', 'git:x', {source: ./ok, other: []}]");
  assert.equal(validate(bad).errors.length, 3);
  assert.match(errorsOf(bad)[0] ?? '', /packages\[0\]: must be npm:<name>@<x\.y\.z>/);
  const good = text(
    "harnesses: {pi: {exclude: ['@acme/todo'], packages: ['npm:mcp@2.0.0']}}",
    "['npm:@acme/todo@1.2.3', 'npm:mcp@1.0.0', ./ext]",
  );
  assert.deepEqual(validate(good).manifest?.agents[0]?.piPackages, [{ source: './ext' }, { source: 'npm:mcp@2.0.0' }]);
  assert.match(errorsOf(`${MINIMAL}harnesses: {pi: {exclude: [a]}}\n`)[0] ?? '', /harnesses\.pi\.exclude: unknown key/);
});

test('A91 a required connector is within those that are granted', () => {
  const text = MINIMAL.replace('tools: all', 'connectors: [slack]\n    connectors_required: [slack, jira]');
  assert.deepEqual(errorsOf(text), [
    'beeuni.yaml:6:34 SchemaError agents.dev.connectors_required[1]: "jira" is not granted by connectors',
  ]);
});

test('A99 A100 A101 problems of an agent file have the line of that file', () => {
  const file = [
    '---',
    'model: coder',
    'mode: primry',
    'steps: 0',
    'maxSteps: 5',
    'tools: {bash: true}',
    'colour: red',
    'color: "#12345"',
    'permission:',
    '  bash: {"git *": allow, "rm *": never}',
    '  webfetch: {"a": allow}',
    '---',
    'Prompt.',
  ].join('\n');
  assert.deepEqual(errorsOf(MINIMAL, { 'agents/dev.md': file }), [
    'agents/dev.md:2:8 SchemaError model: must be provider/model',
    'agents/dev.md:3:7 SchemaError mode: must be one of primary, subagent, all; did you mean "primary"?',
    'agents/dev.md:4:8 SchemaError steps: must be at least 1',
    'agents/dev.md:5:1 SchemaError maxSteps: is not a key of agent files; use steps',
    'agents/dev.md:6:1 SchemaError tools: is not a key of agent files; use permission',
    'agents/dev.md:8:8 SchemaError color: must be #rrggbb or one of primary, secondary, accent, success, warning, error, info',
    'agents/dev.md:10:3 SchemaError permission: must be ask, allow, deny, or a map from tools to rules of them',
  ]);
  assert.deepEqual(warningsOf(MINIMAL, { 'agents/dev.md': file }), [
    'agents/dev.md:7:1 SchemaError colour: unknown key is ignored; did you mean "color"?',
  ]);
});

test('A101 some permission keys take an action only', () => {
  assert.deepEqual(
    errorsOf(MINIMAL, { 'agents/dev.md': '---\npermission:\n  webfetch: {"*": allow}\n  bash: {"*": ask}\n---\n' }),
    ['agents/dev.md:3:13 SchemaError permission.webfetch: takes ask, allow or deny, and no patterns'],
  );
});

test('frontmatter that is not closed or not YAML is a syntax error in the agent file', () => {
  assert.deepEqual(errorsOf(MINIMAL, { 'agents/dev.md': '---\nmodel: a/b\nText' }), [
    'agents/dev.md:1:1 SyntaxError the frontmatter has no closing line ---',
  ]);
  assert.equal(
    errorsOf(MINIMAL, { 'agents/dev.md': '---\nmode: all\nmode: all\n---\n' })[0],
    'agents/dev.md:3:1 SyntaxError map keys must be unique',
  );
  assert.equal(
    validate(MINIMAL, { 'agents/dev.md': 'Only a prompt.\n' }).manifest?.agents[0]?.prompt,
    'Only a prompt.',
  );
});

test('A39 keys that pi ignores are listed for it', () => {
  const files = { 'agents/dev.md': '---\noptions: {top_k: 5}\n---\n' };
  assert.deepEqual(validate(MINIMAL, files).manifest?.ignoredKeys, {
    opencode: [],
    pi: ['agents/dev.md: options'],
    beaver: [],
  });
});

test('the hash input changes with the manifest and with an agent file', () => {
  const input = validate(MINIMAL).hashInput;
  assert.equal(validate(MINIMAL).hashInput, input);
  assert.notEqual(validate(`${MINIMAL}# x\n`).hashInput, input);
  assert.notEqual(validate(MINIMAL, { 'agents/dev.md': `${DEV}x` }).hashInput, input);
});

test('no text and no value makes the validator throw, and a verdict is Valid exactly when it has no error', () => {
  const verdictHolds = (text: string) => {
    const { reason, errors, manifest } = validate(text);
    assert.equal(reason === 'Valid', errors.length === 0);
    assert.equal(manifest !== undefined, errors.length === 0);
    for (const { line: number, column } of errors) assert.ok(number >= 1 && column >= 1);
  };
  fc.assert(fc.property(fc.string({ maxLength: 200 }), verdictHolds), { numRuns: 200 });
  const keys = fc.constantFrom(
    'agents',
    'default_agent',
    'sandbox',
    'templates',
    'tools',
    'harnesses',
    'pi',
    'packages',
    'dev',
    'slug',
    '__proto__',
    'constructor',
    'env',
  );
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 5 },
      fc.string(),
      fc.integer(),
      fc.constant(null),
      fc.array(tie('node'), { maxLength: 3 }),
      fc.dictionary(keys, tie('node'), { maxKeys: 4 }),
    ),
  })).node;
  fc.assert(
    fc.property(value, (node) => verdictHolds(JSON.stringify(node))),
    { numRuns: 300 },
  );
});
