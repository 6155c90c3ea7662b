// What a project brings: which folders are copied, which folder a harness gets, and which skills there are.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createLogger } from '#base/log.ts';
import { makeRunGit } from '../git/run-git.ts';
import { configDirectoriesOf, copiedPaths, prepareMaterial } from './material.ts';
import { findSkills, readSkill } from './skills.ts';

const MANAGED = fileURLToPath(new URL('../../../skills', import.meta.url));
const quiet = createLogger({ level: 'error', write: () => {} });
const claim = {
  harness: 'opencode',
  baseCommit: '',
  projectTools: [],
  configDirs: { opencode: null, pi: null },
  piPackages: [],
};

describe('the folders of a project', () => {
  it('A69 and A70 look for the folder of the harness where the manifest says, then at its own place, then at the old one', () => {
    assert.deepEqual(configDirectoriesOf(claim), ['harnesses/opencode', '.beeuni/opencode']);
    assert.deepEqual(configDirectoriesOf({ ...claim, harness: 'pi', configDirs: { opencode: 'x', pi: './my/pi/' } }), [
      'my/pi',
      'harnesses/pi',
      '.beeuni/pi',
    ]);
    assert.deepEqual(configDirectoriesOf({ ...claim, harness: 'beaver' }), []);
  });

  it('A71 copies nothing of the other harness', () => {
    const tools = [
      { name: 'a', path: 'tools/deep/a.ts' },
      { name: 'b', path: 'tools/b.ts' },
      { name: 'c', path: 'c.ts' },
    ];
    assert.deepEqual(copiedPaths({ ...claim, projectTools: tools }), [
      '.beeuni/opencode/',
      'c.ts',
      'harnesses/opencode/',
      'skills/',
      'tools/',
    ]);
  });

  it('A72 A74 copies the packages that lie in the repository, for pi only', () => {
    const piPackages = [{ source: './packages/plan/' }, { source: 'npm:left-pad@1.0.0' }];
    assert.ok(copiedPaths({ ...claim, harness: 'pi', piPackages }).includes('packages/plan/'));
    assert.ok(!copiedPaths({ ...claim, piPackages }).includes('packages/plan/'));
  });
});

describe('prepareMaterial', () => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-material-'));
  after(() => rmSync(root, { recursive: true, force: true }));
  const workspace = join(root, 'workspace');
  const searchPath = process.env['PATH'] ?? '';
  const request = {
    workspace,
    searchPath,
    target: join(root, 'copy'),
    managedSkills: MANAGED,
    signal: new AbortController().signal,
  };

  it('A129 finds skills of the commit and the managed ones, and the folder of the harness', async () => {
    for (const [path, text] of [
      ['skills/a-skill/SKILL.md', '---\nname: a-skill\ndescription: Does a.\n---\n'],
      ['.beeuni/opencode/commands/x.md', 'x'],
    ] as const) {
      mkdirSync(dirname(join(workspace, path)), { recursive: true });
      writeFileSync(join(workspace, path), text);
    }
    const git = (...args: string[]) => execFileSync('git', args, { cwd: workspace, encoding: 'utf8' }).trim();
    git('init', '--quiet');
    git('add', '.');
    git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '-m', 'x');
    const baseCommit = git('rev-parse', 'HEAD');
    const material = await prepareMaterial(
      makeRunGit(workspace, searchPath),
      { ...request, claim: { ...claim, baseCommit } },
      quiet,
    );
    assert.equal(material.configDirectory, join(root, 'copy/.beeuni/opencode'));
    assert.deepEqual(
      material.skills.map(({ name, managed }) => [name, managed]),
      [
        ['beeuni-memory', true],
        ['beeuni-session', true],
        ['beeuni-tools', true],
        ['a-skill', false],
      ],
    );
  });

  it('gives a project whose commit cannot be read the managed skills and nothing else', async () => {
    const logged: string[] = [];
    const material = await prepareMaterial(
      makeRunGit(workspace, searchPath),
      { ...request, target: join(root, 'none'), claim: { ...claim, baseCommit: 'f'.repeat(40) } },
      createLogger({ level: 'error', write: (line) => logged.push(line) }),
    );
    assert.equal(material.configDirectory, null);
    assert.ok(material.skills.length > 0 && material.skills.every(({ managed }) => managed));
    assert.equal(logged.length, 1);
    assert.ok(!existsSync(join(root, 'none')));
  });
});

describe('skills', () => {
  it('A128 takes the name of the folder and a description, and nothing less', () => {
    const of = (name: string, frontmatter: string) => readSkill(name, `---\n${frontmatter}\n---\nText.\n`);
    assert.deepEqual(of('a-b', 'name: a-b\ndescription: " Does it. "'), { description: 'Does it.' });
    for (const [name, frontmatter] of [
      ['a', 'name: b\ndescription: x'],
      ['a', 'name: a'],
      ['a', 'name: a\ndescription: 7'],
      ['A', 'name: A\ndescription: x'],
      ['a', 'name: [a'],
      ['a--b', 'name: a--b\ndescription: x'],
    ] as const) {
      assert.ok('problem' in of(name, frontmatter), frontmatter);
    }
    assert.ok('problem' in readSkill('a', 'No frontmatter.'));
    assert.ok('problem' in readSkill('a', '---\nname: a\n'));
  });

  it('A129 never takes a project skill that has a managed name', () => {
    const root = mkdtempSync(join(tmpdir(), 'beeuni-skills-'));
    mkdirSync(join(root, 'beeuni-other'));
    writeFileSync(join(root, 'beeuni-other/SKILL.md'), '---\nname: beeuni-other\ndescription: x\n---\n');
    assert.ok(findSkills(MANAGED, root, quiet).every(({ managed }) => managed));
    rmSync(root, { recursive: true, force: true });
  });
});
