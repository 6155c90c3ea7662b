// Searches that cannot end.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSearchTools } from '#daemon/harness/pi/worker/search-tools.ts';
import { whyNoPi } from '#test/support/pi.ts';

test('FF6 a search that a pipe holds up ends, with what to look for', { skip: whyNoPi() ?? false }, async () => {
  const workspace = mkdtempSync(join(tmpdir(), 'beeuni-search-'));
  try {
    writeFileSync(join(workspace, 'a.txt'), 'needle\n');
    const inputs = { glob: { pattern: '*.txt' }, grep: { pattern: 'needle' } };
    const found = createSearchTools(workspace);
    const run = async (tool: (typeof found)[number]) =>
      tool.execute('c', inputs[tool.name as keyof typeof inputs], undefined, undefined, undefined as never);
    for (const tool of found) assert.match(JSON.stringify((await run(tool)).content), /a\.txt/);
    execFileSync('mkfifo', [join(workspace, '.gitignore')]);
    execFileSync('git', ['init', '-q', workspace]);
    for (const tool of createSearchTools(workspace, 300)) {
      await assert.rejects(run(tool), /took longer than 0\.3 s; .* is a pipe/);
    }
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
});
