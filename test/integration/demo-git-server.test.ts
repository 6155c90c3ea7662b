// The demo's git server as a person's own repository meets it.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createRepository, git } from '#examples/demo/git-server.ts';

test('a repository whose first branch is not main has that branch as its default, and keeps it', async () => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-demo-git-'));
  try {
    const remote = await createRepository(root, 'x.git');
    const work = await createRepository(root, 'seed.git');
    const tree = await git(work, 'hash-object', '-t', 'tree', '-w', '/dev/null');
    const commit = await git(work, 'commit-tree', tree, '-m', 'Start');
    await git(work, 'push', '--quiet', remote, `${commit}:refs/heads/master`);
    assert.equal(await git(remote, 'symbolic-ref', 'HEAD'), 'refs/heads/master');
    await git(work, 'push', '--quiet', remote, `${commit}:refs/heads/other`);
    assert.equal(await git(remote, 'symbolic-ref', 'HEAD'), 'refs/heads/master');
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
