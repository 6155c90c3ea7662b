// Proves what `make up REPO=…` takes before anything is started.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { repositoryProblem } from './repository.ts';

test('REPO is a URL or the path of a repository with a commit, and nothing else', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'beeuni-repo-'));
  try {
    for (const good of [undefined, 'https://git.example.com/shop.git', 'git@git.example.com:shop.git', 'ssh://h/x'])
      assert.equal(await repositoryProblem(good), undefined);
    assert.match((await repositoryProblem(join(empty, 'nope'))) ?? '', /^there is no folder .*nope; REPO takes/);
    assert.equal(await repositoryProblem(empty), `${empty} is no git repository with a commit`);
  } finally {
    rmSync(empty, { recursive: true, force: true });
  }
});
