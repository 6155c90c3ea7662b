// How git's own words become a list of changed files.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeRunGit } from './run-git.ts';
import { diffWorkspace, parseNumstat } from './workspace-diff.ts';

test('counts are numbers, those of a binary file null, and a path keeps its tabs and line ends', () => {
  assert.deepEqual(parseNumstat('3\t1\ta.txt\0-\t-\tlogo.png\u00000\t0\todd\tname\n.txt\0'), [
    { path: 'a.txt', additions: 3, deletions: 1 },
    { path: 'logo.png', additions: null, deletions: null },
    { path: 'odd\tname\n.txt', additions: 0, deletions: 0 },
  ]);
  assert.deepEqual(parseNumstat(''), []);
});

test('a record that the limit of the output has cut is left out', () => {
  assert.deepEqual(parseNumstat('1\t0\ta\u00001\t0\tcut-in-the-mid'), [{ path: 'a', additions: 1, deletions: 0 }]);
});

test('FF8 each filter of the repository is turned off by name, and git is told which repository', async () => {
  const runs: (readonly string[])[] = [];
  await diffWorkspace(
    async (args) => {
      runs.push(args);
      const isConfig = args.includes('config');
      return { code: 0, stdout: isConfig ? 'filter.evil.clean\0filter.a.b.process\0' : '', stderr: '' };
    },
    '/nowhere',
    'base',
  );
  for (const args of runs) assert.deepEqual(args.slice(0, 2), ['--git-dir=.git', '--work-tree=.']);
  const diff = runs.find((args) => args.includes('--numstat')) ?? [];
  for (const setting of [
    'filter.evil.clean=',
    'filter.evil.process=',
    'filter.a.b.process=',
    'filter.a.b.required=false',
  ])
    assert.ok(diff.includes(setting), setting);
  for (const flag of ['--no-ext-diff', '--no-textconv', '--ignore-submodules=all'])
    assert.ok(diff.includes(flag), flag);
});

test('FF6 a pipe in place of a tracked file is named, and hides no other change', async () => {
  const workspace = mkdtempSync(join(tmpdir(), 'beeuni-diff-'));
  try {
    const git = (...words: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
        cwd: workspace,
        encoding: 'utf8',
      });
    git('init', '-q');
    for (const name of ['AGENTS.md', 'a[1].txt', 'b.txt']) writeFileSync(join(workspace, name), 'old\n');
    git('add', '.');
    git('commit', '-qm', 'base');
    const base = git('rev-parse', 'HEAD').trim();
    for (const name of ['AGENTS.md', 'a[1].txt']) {
      rmSync(join(workspace, name));
      execFileSync('mkfifo', [name], { cwd: workspace });
    }
    writeFileSync(join(workspace, 'b.txt'), 'new\n');
    const run = makeRunGit(workspace, process.env['PATH'] ?? '');
    const diff = await diffWorkspace(run, workspace, base);
    assert.deepEqual(
      diff.files.map(({ path, additions }) => [path, additions]),
      [
        ['b.txt', 1],
        ['AGENTS.md', null],
        ['a[1].txt', null],
      ],
    );
    assert.match(diff.patch, /\+new/);
    rmSync(join(workspace, '.git'), { recursive: true });
    await assert.rejects(diffWorkspace(run, workspace, base), { name: 'ConflictError', code: 'workspace_unreadable' });
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
});
