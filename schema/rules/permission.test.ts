// Permission rules on single calls: which pattern matches, which rule wins, and what a shell line consists of.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cpuMsOf } from '#test/support/cpu-time.ts';
import { commandsOf, decidePermission, isAlwaysDenied, matchesPattern, type PermissionRules } from './permission.ts';

const bash = (rules: PermissionRules | undefined, line: string) =>
  decidePermission(rules, { keys: ['bash'], subjects: commandsOf(line) });

describe('matchesPattern', () => {
  it('A117 takes * as any text, ? as one character, and is anchored at both ends', () => {
    assert.ok(matchesPattern('git *', 'git status -s'));
    assert.ok(matchesPattern('s?c/**', 'src/a/b.ts'));
    assert.ok(!matchesPattern('git', 'git status'));
    assert.ok(!matchesPattern('s?c', 'sc'));
    assert.ok(matchesPattern('a.b', 'a.b') && !matchesPattern('a.b', 'axb'));
  });

  it('A117 lets a pattern that ends in space and star match the bare command', () => {
    assert.ok(matchesPattern('ls *', 'ls'));
    assert.ok(!matchesPattern('ls *', 'lsof'));
  });

  it('FF13 stays quick on a pattern of stars', () => {
    const cpuMs = cpuMsOf(() => assert.ok(!matchesPattern('*a'.repeat(30), `${'a'.repeat(20_000)}b`)));
    assert.ok(cpuMs < 1_000, `${cpuMs} ms of CPU`);
  });
});

describe('decidePermission', () => {
  it('A118 allows a tool without a rule', () => {
    assert.equal(bash(undefined, 'ls'), 'allow');
    assert.equal(bash({ edit: 'deny' }, 'ls'), 'allow');
  });

  it('A117 lets the longest pattern win and * lose', () => {
    const rules: PermissionRules = { bash: { '*': 'deny', 'git *': 'ask', 'git status': 'allow' } };
    assert.deepEqual(
      ['git status', 'git push', 'rm x'].map((line) => bash(rules, line)),
      ['allow', 'ask', 'deny'],
    );
  });

  it("A116 lets a rule under the tool's own name win over the capability", () => {
    const rules: PermissionRules = { write: 'deny', edit: 'allow' };
    assert.equal(decidePermission(rules, { keys: ['write', 'edit'], subjects: ['a'] }), 'deny');
    assert.equal(decidePermission(rules, { keys: ['edit'], subjects: ['a'] }), 'allow');
  });

  it('falls through to the next key, at last to *, when no pattern matches', () => {
    assert.equal(bash({ '*': 'deny', bash: { 'git *': 'allow' } }, 'ls'), 'deny');
    assert.equal(bash({ '*': 'deny', bash: { 'git *': 'allow' } }, 'git log'), 'allow');
    assert.equal(bash('ask', 'ls'), 'ask');
  });

  it('A118 asks when a pattern map restricts something and there is nothing to test', () => {
    const none = { keys: ['bash'], subjects: [] };
    assert.equal(decidePermission({ bash: { 'rm *': 'deny' } }, none), 'ask');
    assert.equal(decidePermission({ bash: { 'ls *': 'allow' } }, none), 'allow');
    assert.equal(decidePermission({ bash: { '*': 'deny' } }, none), 'deny');
  });

  it('takes the strictest of the commands of a line, wherever they hide', () => {
    const rules: PermissionRules = { bash: { 'rm *': 'deny', 'git *': 'allow' } };
    for (const line of [
      'git log; rm x',
      'git log && rm x',
      'echo "$(rm x)"',
      'a | rm x',
      'echo `rm x`',
      'a &\nrm x',
      '(rm x)',
    ])
      assert.equal(bash(rules, line), 'deny', line);
    assert.equal(bash(rules, "echo 'a; rm x'"), 'allow');
  });

  it('A111 knows a tool that can never run', () => {
    assert.ok(isAlwaysDenied({ bash: 'deny' }, ['bash']));
    assert.ok(isAlwaysDenied({ '*': 'deny' }, ['bash']));
    assert.ok(!isAlwaysDenied({ '*': 'deny', bash: { 'git *': 'allow' } }, ['bash']));
    assert.ok(!isAlwaysDenied(undefined, ['bash']));
  });
});
