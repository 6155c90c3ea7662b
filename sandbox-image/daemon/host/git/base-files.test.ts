// Copies of a commit's files: what is in the commit counts, whatever the work tree, its filters or its hooks say.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createLogger } from '#base/log.ts';
import { makeGitBackend } from '#test/support/git-backend.ts';
import { copyBaseFiles, entriesOf } from './base-files.ts';
import { makeRunGit } from './run-git.ts';

const searchPath = process.env['PATH'] ?? '';
const log = createLogger({ level: 'error', write: () => {} });

describe('copyBaseFiles', () => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-base-files-'));
  const workspace = join(root, 'workspace');
  const target = join(root, 'copy');
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
      cwd: workspace,
      encoding: 'utf8',
    }).trim();
  let commit: string;

  before(() => {
    mkdirSync(join(workspace, 'tools/lib'), { recursive: true });
    git('init', '--quiet');
    writeFileSync(join(workspace, 'tools/a.ts'), 'of the commit');
    writeFileSync(join(workspace, 'tools/lib/run.sh'), '#!/bin/sh\n', { mode: 0o755 });
    writeFileSync(join(workspace, 'tools/größe 🐝.md'), 'name');
    writeFileSync(join(workspace, 'tools/empty'), '');
    writeFileSync(join(workspace, 'tools/bytes.bin'), Buffer.from([0, 255, 10, 13, 0]));
    writeFileSync(join(workspace, 'other.txt'), 'not asked for');
    symlinkSync('/etc/passwd', join(workspace, 'tools/link'));
    writeFileSync(join(workspace, '.gitattributes'), '* filter=evil ident export-subst\n');
    git('add', '.');
    git('commit', '--quiet', '-m', 'x');
    commit = git('rev-parse', 'HEAD');
    git('config', 'filter.evil.smudge', `touch ${root}/smudged`);
    git('config', 'core.fsmonitor', `touch ${root}/monitored`);
    writeFileSync(join(workspace, 'tools/a.ts'), 'of the work tree');
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  const copy = (paths: readonly string[], of = commit) =>
    copyBaseFiles(
      makeRunGit(workspace, searchPath),
      { workspace, searchPath, commit: of, paths, target, signal: new AbortController().signal },
      log,
    );

  it('A157 copies what the commit holds, byte for byte and read-only, and only what is asked for', async () => {
    await copy(['tools/', 'skills/', 'missing.ts']);
    assert.equal(readFileSync(join(target, 'tools/a.ts'), 'utf8'), 'of the commit');
    assert.deepEqual([...readFileSync(join(target, 'tools/bytes.bin'))], [0, 255, 10, 13, 0]);
    assert.deepEqual(readdirSync(target), ['tools']);
    assert.deepEqual(readdirSync(join(target, 'tools')).sort(), ['a.ts', 'bytes.bin', 'empty', 'größe 🐝.md', 'lib']);
    assert.equal(statSync(join(target, 'tools/a.ts')).mode & 0o777, 0o444);
    assert.equal(statSync(join(target, 'tools/lib/run.sh')).mode & 0o777, 0o555);
  });

  it('FF8 runs no filter and no monitor of the repository, and FF5 copies no link', () => {
    assert.ok(!existsSync(join(root, 'smudged')) && !existsSync(join(root, 'monitored')));
    assert.ok(!existsSync(join(target, 'tools/link')));
  });

  it('FF8 takes no replacement of an object for the object', async () => {
    const blob = git('rev-parse', `${commit}:tools/a.ts`);
    const evil = execFileSync('git', ['hash-object', '-w', '--stdin'], {
      cwd: workspace,
      input: 'replaced',
      encoding: 'utf8',
    });
    git('replace', blob, evil.trim());
    await copy(['tools/']);
    assert.equal(readFileSync(join(target, 'tools/a.ts'), 'utf8'), 'of the commit');
  });

  it('replaces an earlier copy as a whole, and keeps it when the commit is not there', async () => {
    await assert.rejects(copy(['tools/'], 'f'.repeat(40)), { code: 'repository_unreachable' });
    assert.ok(existsSync(join(target, 'tools/a.ts')));
    await copy(['other.txt']);
    assert.deepEqual(readdirSync(target), ['other.txt']);
  });

  it('A57 fetches a base commit that a kept workspace does not have yet', async () => {
    const remote = makeGitBackend({ 'tools/a.ts': 'of the remote' });
    const server = createServer((request, response) => void remote.serve(request, response, request.url ?? '/'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    git('config', 'remote.origin.url', `http://127.0.0.1:${port}`);
    git('config', 'remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*');
    await copy(['tools/'], remote.baseCommit);
    assert.equal(readFileSync(join(target, 'tools/a.ts'), 'utf8'), 'of the remote');
    server.close();
    server.closeAllConnections();
    remote.remove();
  });

  it('refuses a configuration that is too large', async () => {
    writeFileSync(join(workspace, 'big'), Buffer.alloc(34_000_000, 'a'));
    git('add', 'big');
    git('commit', '--quiet', '-m', 'big');
    await assert.rejects(copy(['big'], git('rev-parse', 'HEAD')), { code: 'repository_too_large' });
  });
});

describe('entriesOf', () => {
  const line = (mode: string, type: string, path: string) => `${mode} ${type} ${'a'.repeat(40)}\t${path}\0`;

  it('FF7 knows regular files only, at paths that stay inside', () => {
    const listing = [
      line('100644', 'blob', 'tools/a.ts'),
      line('100755', 'blob', 'tools/b.sh'),
      line('120000', 'blob', 'tools/link'),
      line('160000', 'commit', 'tools/module'),
      line('100644', 'blob', '../up'),
      line('100644', 'blob', 'tools/../../up'),
      line('100644', 'blob', '/abs'),
      line('100644', 'blob', 'tools/.git/config'),
      line('100644', 'blob', 'tools/.GIT/config'),
      line('100644', 'blob', 'tools/./x'),
    ].join('');
    assert.deepEqual(
      entriesOf(listing).map(({ path, executable }) => [path, executable]),
      [
        ['tools/a.ts', false],
        ['tools/b.sh', true],
      ],
    );
  });
});
