// Which rules govern a call of a tool of ours, and which skills an agent may use.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decidePermission } from '#schema/rules/permission.ts';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import { skillAction } from './skills.ts';
import { permissionQuestionOf, UNASKABLE_TOOLS } from './tools.ts';

describe('permissionQuestionOf', () => {
  it('A52 puts both searches under websearch and pages under webfetch, below their own names', () => {
    assert.deepEqual(permissionQuestionOf('image_search', {}, true), {
      keys: ['image_search', 'websearch'],
      subjects: [],
    });
    assert.deepEqual(permissionQuestionOf('scrape_webpage', {}, true), {
      keys: ['scrape_webpage', 'webfetch'],
      subjects: [],
    });
    assert.deepEqual([...UNASKABLE_TOOLS].sort(), ['image_search', 'scrape_webpage', 'web_search']);
  });

  it('A53 lets memory follow edit and read where the harness asks in process, and only its own rule elsewhere', () => {
    const rules = { edit: { 'memory/locked/*': 'deny', '*': 'allow' }, read: 'ask' } as const;
    const decide = (command: string, path: string, follows: boolean) =>
      decidePermission(rules, permissionQuestionOf('memory', { command, path }, follows));
    assert.equal(decide('create', 'memory/locked/a.md', true), 'deny');
    assert.equal(decide('create', 'memory/a.md', true), 'allow');
    assert.equal(decide('view', 'memory/a.md', true), 'ask');
    assert.equal(decide('create', 'memory/locked/a.md', false), 'allow');
  });

  it('A116 knows no capability for other tools, nor for names that every object has', () => {
    for (const name of ['show', 'deploy', 'constructor', '__proto__']) {
      assert.deepEqual(permissionQuestionOf(name, null, true), { keys: [name], subjects: [] });
    }
  });
});

describe('skillAction', () => {
  const actions = (agent: Pick<CompiledAgent, 'skills' | 'permission'>) =>
    ['a', 'b', 'beeuni-memory'].map((name) => skillAction(agent, name));

  it('A102 follows the grant, and A129 leaves managed skills in', () => {
    assert.deepEqual(actions({ skills: 'all' }), ['allow', 'allow', 'allow']);
    assert.deepEqual(actions({ skills: 'none' }), ['deny', 'deny', 'allow']);
    assert.deepEqual(actions({ skills: ['a'] }), ['allow', 'deny', 'allow']);
  });

  it('A129 lets rules of the agent deny or ask, and never widen the grant', () => {
    assert.deepEqual(actions({ skills: ['a'], permission: { skill: 'ask' } }), ['ask', 'deny', 'ask']);
    assert.deepEqual(actions({ skills: ['a'], permission: { skill: { '*': 'allow', a: 'ask' } } }), [
      'ask',
      'deny',
      'allow',
    ]);
    assert.deepEqual(actions({ skills: 'all', permission: { skill: { 'beeuni-*': 'deny' } } }), [
      'allow',
      'allow',
      'deny',
    ]);
    assert.deepEqual(actions({ skills: 'all', permission: 'deny' }), ['deny', 'deny', 'deny']);
  });
});
