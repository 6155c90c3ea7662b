// Long outputs: what the model gets, and where the rest is.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { headOfBytes } from '#base/head-of-text.ts';
import { MAX_OUTPUT_BYTES, MAX_OUTPUT_LINES, makeCutOutput } from './cut-output.ts';

describe('cutOutput', () => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-cut-'));
  after(() => rmSync(root, { recursive: true, force: true }));
  const folder = join(root, 'outputs');
  const cut = makeCutOutput(folder);
  const savedIn = (output: string): string => / is in (\S+)\]$/.exec(output)?.[1] ?? '';

  it('A108 leaves an output at the limits as it is, without a file', async () => {
    for (const output of ['x'.repeat(MAX_OUTPUT_BYTES), 'x\n'.repeat(MAX_OUTPUT_LINES - 1)]) {
      assert.equal(await cut(output), output);
    }
    assert.throws(() => readdirSync(folder));
  });

  it('A108 cuts too many bytes at a whole character, and saves all of it for the owner only', async () => {
    const output = '🐝'.repeat(20_000);
    const shown = await cut(output);
    assert.ok(Buffer.byteLength(shown) <= MAX_OUTPUT_BYTES && !shown.includes('\uFFFD'));
    assert.match(shown, /\[The output has 80000 bytes in 1 lines and is cut here\. All of it is in /);
    assert.equal(readFileSync(savedIn(shown), 'utf8'), output);
    assert.equal(statSync(savedIn(shown)).mode & 0o777, 0o600);
  });

  it('A108 cuts too many lines', async () => {
    const shown = await cut('line\n'.repeat(3_000));
    assert.ok(shown.split('\n').length <= MAX_OUTPUT_LINES);
    assert.equal(readFileSync(savedIn(shown), 'utf8').length, 15_000);
  });

  it('B27 B28 cuts an output once: what was cut is left as it is', async () => {
    for (const output of ['x'.repeat(60_000), 'line\n'.repeat(3_000), '🐝'.repeat(20_000)]) {
      const shown = await cut(output);
      assert.notEqual(shown, output);
      assert.equal(await cut(shown), shown);
    }
  });

  it('cuts also when nothing can be saved', async () => {
    writeFileSync(join(root, 'file'), '');
    const shown = await makeCutOutput(join(root, 'file'))('x'.repeat(60_000));
    assert.match(shown, /The rest could not be saved\.\]$/);
  });

  it('cuts no character in two', () => {
    for (let limit = 0; limit <= 9; limit += 1)
      assert.ok(!headOfBytes('aé🐝b', limit).includes('\uFFFD'), String(limit));
  });
});
