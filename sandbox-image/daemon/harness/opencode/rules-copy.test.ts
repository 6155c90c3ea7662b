// The copy of the rules that OpenCode reads, and the files above the workspace.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { RULES_COPY, readRules, rulesAbove, writeRules } from './rules-copy.ts';

describe('the copy of the rules', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'beeuni-rules-copy-')));
  after(() => rmSync(root, { recursive: true, force: true }));
  const found = (path: string) => ({ source: 'workspace' as const, path, bytes: 1, sha: 'x' });

  it('A61 FE5 reads what the host found, and nothing of a pipe or a link in its place', {
    timeout: 5_000,
  }, async () => {
    const path = join(root, 'AGENTS.md');
    assert.equal(await readRules(null), null);
    assert.equal(await readRules(found(path)), null);
    writeFileSync(path, 'Be kind.');
    assert.equal(await readRules(found(path)), 'Be kind.');
    rmSync(path);
    execFileSync('mkfifo', [path]);
    assert.equal(await readRules(found(path)), null);
    rmSync(path);
    symlinkSync('/etc/passwd', path);
    assert.equal(await readRules(found(path)), null);
  });

  it('A59 is replaced as a whole, and goes when there are no rules any more', () => {
    const copy = join(root, 'config', RULES_COPY);
    writeRules(join(root, 'config'), 'one');
    writeRules(join(root, 'config'), 'two');
    assert.equal(readFileSync(copy, 'utf8'), 'two');
    assert.equal(statSync(copy).mode & 0o777, 0o600);
    writeRules(join(root, 'config'), null);
    writeRules(join(root, 'config'), null);
    assert.ok(!existsSync(copy));
  });

  it('A56 finds rules in the folders above the workspace, the outermost first, one of each and no link', () => {
    const inner = join(root, 'a/b');
    mkdirSync(join(inner, 'workspace'), { recursive: true });
    writeFileSync(join(root, 'a/AGENTS.md'), 'x');
    writeFileSync(join(root, 'a/CLAUDE.md'), 'x');
    writeFileSync(join(inner, 'CLAUDE.md'), 'x');
    writeFileSync(join(inner, 'workspace/AGENTS.md'), 'x');
    assert.deepEqual(
      rulesAbove(join(inner, 'workspace')).filter((path) => path.startsWith(`${root}/a/`)),
      [join(root, 'a/AGENTS.md'), join(inner, 'CLAUDE.md')],
    );
  });
});
