// The lock between processes.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { withLock } from './lock.ts';

describe('lock', () => {
  let dir = '';
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'beeuni-lock-'));
  });
  after(() => rmSync(dir, { recursive: true }));

  test('one holder at a time, and a failure frees it', async () => {
    const path = join(dir, 'lock');
    let holders = 0;
    let most = 0;
    const guarded = async (): Promise<void> => {
      holders++;
      most = Math.max(most, holders);
      await new Promise((resolve) => setImmediate(resolve));
      holders--;
      throw new Error('planned');
    };
    const ends = await Promise.allSettled([1, 2, 3].map(() => withLock(path, guarded)));
    assert.equal(most, 1);
    assert.ok(ends.every((end) => end.status === 'rejected' && String(end.reason).includes('planned')));
    assert.equal(await withLock(path, () => Promise.resolve('free')), 'free');
  });
});
