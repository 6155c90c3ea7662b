// What a call of a tool needs leave for, and who is asked how often.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PermissionRules } from '#schema/rules/permission.ts';
import type { HumanRequest } from '../contract/adapter.ts';
import { createPermissions, type ToolUse } from './permissions.ts';

const SKILLS = [{ name: 'baking', description: 'd', directory: '/opt/skills/baking', managed: false }];

const make = (...rules: readonly (PermissionRules | undefined)[]) => {
  const asked: HumanRequest[] = [];
  const permissions = createPermissions({
    workspace: '/workspace',
    realPath: (path) => path.replace(/^\/workspace\/link(?=\/|$)/, '/elsewhere'),
    skills: SKILLS,
    ownTools: new Set(['web_search', 'memory']),
    threadId: 'root',
    rules: () => rules,
    ask: async (request) => {
      asked.push(request);
      return { kind: 'permission', reply: 'once', message: null };
    },
    messageOf: () => undefined,
  });
  let calls = 0;
  const judge = async (tool: string, input: ToolUse['input'], callId = `c${(calls += 1)}`): Promise<string> => {
    const verdict = await permissions.judge({ tool, callId, input }, undefined);
    return verdict.allowed ? 'allowed' : verdict.reason;
  };
  return { asked, judge, permissions };
};

describe('createPermissions', () => {
  it('A117 names files by their path in the workspace, however they are written', async () => {
    const { judge } = make({ edit: { 'src/*': 'deny' } });
    for (const path of ['src/a.ts', './src/a.ts', '/workspace/src/a.ts', 'lib/../src/a.ts'])
      assert.match(await judge('write', { path }), /denies src\/a\.ts/, path);
    assert.equal(await judge('edit', { path: 'lib/src/a.ts' }), 'allowed');
  });

  it('A116 asks for what lies outside of the workspace by external_directory, and for skills by skill', async () => {
    const { judge } = make({ external_directory: 'deny', skill: { baking: 'allow' } });
    for (const path of ['/etc/passwd', '../x', '/workspace-other/x'])
      assert.match(await judge('read', { path }), /external_directory/, path);
    assert.match(await judge('grep', { pattern: 'x', path: '/etc' }), /external_directory/);
    assert.equal(await judge('read', { path: '/opt/skills/baking/SKILL.md' }), 'allowed');
    assert.equal(await judge('grep', { pattern: 'x' }), 'allowed');
  });

  it('A117 judges a path by its name and by where it leads, inside of the workspace too', async () => {
    const links: Readonly<Record<string, string>> = {
      '/workspace/alias.txt': '/workspace/secret.txt',
      '/proc/self/cwd/secret.txt': '/workspace/secret.txt',
    };
    const asked: unknown[] = [];
    const permissions = createPermissions({
      workspace: '/workspace',
      realPath: (path) => links[path] ?? path,
      skills: [],
      ownTools: new Set(),
      threadId: 'root',
      rules: () => [
        { read: { '*': 'allow', 'secret*': 'deny', 'alias*': 'ask' }, external_directory: { '*': 'allow' } },
      ],
      ask: async (request) => {
        asked.push(request.data['patterns']);
        return { kind: 'permission', reply: 'once', message: null };
      },
      messageOf: () => undefined,
    });
    const judge = async (path: string, callId: string) =>
      (await permissions.judge({ tool: 'read', callId, input: { path } }, undefined)).allowed;
    assert.equal(await judge('secret.txt', '1'), false);
    assert.equal(await judge('alias.txt', '2'), false);
    assert.equal(await judge('/proc/self/cwd/secret.txt', '3'), false);
    assert.equal(await judge('alias-of-nothing.txt', '4'), true);
    assert.deepEqual(asked, [['alias-of-nothing.txt']]);
  });

  it('FF5 follows links before it says what lies inside of the workspace', async () => {
    const { judge } = make({ external_directory: 'deny' });
    for (const path of ['link', 'link/secret', '/workspace/link/deep/x'])
      assert.match(await judge('write', { path }), /external_directory/, path);
    assert.equal(await judge('write', { path: 'linked/x' }), 'allowed');
  });

  it('A127 lets a deny of either side win, and asks where one side asks', async () => {
    const { judge, asked } = make({ bash: 'ask' }, { bash: { 'sudo *': 'deny' } });
    assert.match(await judge('bash', { command: 'sudo x' }), /denies/);
    assert.equal(asked.length, 0);
    assert.equal(await judge('bash', { command: 'ls' }), 'allowed');
    assert.equal(asked.length, 1);
  });

  it('asks once for the same call and again for other arguments', async () => {
    const { judge, asked } = make({ bash: 'ask' });
    await judge('bash', { command: 'ls' }, 'same');
    await judge('bash', { command: 'ls' }, 'same');
    assert.equal(asked.length, 1);
    await judge('bash', { command: 'rm x' }, 'same');
    assert.equal(asked.length, 2);
  });

  it('A119 asks about those commands of a line that a rule wants asked', async () => {
    const { judge, asked } = make({ bash: { '*': 'allow', 'rm *': 'ask' } });
    await judge('bash', { command: 'ls && rm x' });
    assert.deepEqual(asked[0]?.data['patterns'], ['rm x']);
  });

  it('A111 A53 hides what can never run, and shows a tool of which one use can', () => {
    const { permissions } = make({ edit: 'deny', '*': 'allow', websearch: 'deny' });
    assert.deepEqual(
      ['write', 'edit', 'read', 'web_search', 'memory'].map((tool) => permissions.isHidden(tool)),
      [true, true, false, true, false],
    );
  });
});
