// The guard of test files: what a file leaves open ends the run with its name, and does not hang it.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runToEnd } from '#test/cluster/process.ts';

const GUARD = fileURLToPath(new URL('../support/file-guard.ts', import.meta.url));

const runFile = async (body: string, lingerMs: number) => {
  const dir = mkdtempSync(join(tmpdir(), 'beeuni-guard-'));
  try {
    const file = join(dir, 'one.test.mjs');
    writeFileSync(
      file,
      `import { test } from 'node:test';\nimport { createServer } from 'node:net';\ntest('one', () => {${body}});\n`,
    );
    const { NODE_TEST_CONTEXT: _ours, ...env } = process.env;
    return await runToEnd(process.execPath, [`--import=${GUARD}`, '--test', file], {
      env: { ...env, BEEUNI_TEST_LINGER_MS: String(lingerMs) },
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
};

test('a file that leaves a server open fails and names its port', async () => {
  const { code, stdout, stderr } = await runFile("createServer().listen(0, '127.0.0.1');", 300);
  assert.equal(code, 1);
  assert.match(stdout + stderr, /the process of this file stands:[^]*tcp port \d+/);
});

test('a file that leaves nothing open ends by itself', async () => {
  const { code, stdout, stderr } = await runFile('', 120_000);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /pass 1/);
});
