// The rules file of a repository that nobody trusts: what is taken, and what is refused without a wait.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { createLogger } from '#base/log.ts';
import { findRulesFile } from './rules-file.ts';

describe('findRulesFile', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'beeuni-rules-')));
  const workspace = join(root, 'workspace');
  let logged: string[];
  beforeEach(() => {
    rmSync(workspace, { recursive: true, force: true });
    mkdirSync(workspace);
    logged = [];
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  const find = () => findRulesFile(workspace, createLogger({ level: 'warn', write: (line) => logged.push(line) }));
  const inWorkspace = (name: string): string => join(workspace, name);

  it('A26 names path, bytes and the beginning of the hash', async () => {
    writeFileSync(inWorkspace('AGENTS.md'), 'Be kind.\n');
    assert.deepEqual(await find(), {
      source: 'workspace',
      path: inWorkspace('AGENTS.md'),
      bytes: 9,
      sha: execFileSync('sha256sum', [inWorkspace('AGENTS.md')], { encoding: 'utf8' }).slice(0, 12),
    });
  });

  it('A55 takes CLAUDE.md when there is no AGENTS.md, and nothing of a folder', async () => {
    assert.equal(await find(), null);
    mkdirSync(inWorkspace('docs'));
    writeFileSync(inWorkspace('docs/AGENTS.md'), 'not this');
    writeFileSync(inWorkspace('CLAUDE.md'), 'this');
    assert.equal((await find())?.path, inWorkspace('CLAUDE.md'));
    writeFileSync(inWorkspace('AGENTS.md'), 'rather this');
    assert.equal((await find())?.path, inWorkspace('AGENTS.md'));
  });

  it('follows a link that stays inside of the repository', async () => {
    writeFileSync(inWorkspace('RULES'), 'Be kind.');
    symlinkSync('RULES', inWorkspace('AGENTS.md'));
    assert.equal((await find())?.path, inWorkspace('RULES'));
  });

  it('A61 adds nothing for an empty file, without a word', async () => {
    writeFileSync(inWorkspace('AGENTS.md'), '');
    assert.equal(await find(), null);
    assert.deepEqual(logged, []);
  });

  const hostile: Readonly<Record<string, () => void>> = {
    'a link to /etc/passwd': () => symlinkSync('/etc/passwd', inWorkspace('AGENTS.md')),
    'a link to a device': () => symlinkSync('/dev/zero', inWorkspace('AGENTS.md')),
    'a link through a folder that is a link': () => {
      symlinkSync('/etc', inWorkspace('etc'));
      symlinkSync('etc/passwd', inWorkspace('AGENTS.md'));
    },
    'a pipe': () => execFileSync('mkfifo', [inWorkspace('AGENTS.md')]),
    'a folder': () => mkdirSync(inWorkspace('AGENTS.md')),
    'a gigabyte': () => {
      writeFileSync(inWorkspace('AGENTS.md'), 'x');
      truncateSync(inWorkspace('AGENTS.md'), 1_073_741_824);
    },
    'no UTF-8': () => writeFileSync(inWorkspace('AGENTS.md'), Buffer.from([0xff, 0xfe, 0x41])),
  };
  for (const [what, make] of Object.entries(hostile)) {
    it(`FE5 A61 refuses ${what} with one warning, at once, and looks no further`, { timeout: 5_000 }, async () => {
      make();
      writeFileSync(inWorkspace('CLAUDE.md'), 'not in its place');
      assert.equal(await find(), null);
      assert.equal(logged.length, 1);
    });
  }

  it('FE5 treats a link to itself as nothing', { timeout: 5_000 }, async () => {
    symlinkSync('AGENTS.md', inWorkspace('AGENTS.md'));
    assert.equal(await find(), null);
  });
});
