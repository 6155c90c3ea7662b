// The watchdog in a process whose event loop stands still.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const MODULE = fileURLToPath(new URL('../../sandbox-image/daemon/host/process/watchdog.ts', import.meta.url));

type Exit = Readonly<{ code: number | null; signal: string | null }>;

/** Runs a module that starts the watchdog and then does `body`; it is killed after 30 s whatever happens. */
const run = (folder: string, body: string): Promise<Exit> => {
  const script = join(folder, 'watched.mjs');
  const settings = JSON.stringify({ limitMs: 1_000, terminationFile: join(folder, 'termination-log') });
  writeFileSync(
    script,
    `import { startWatchdog } from ${JSON.stringify(MODULE)};\nconst stop = startWatchdog(${settings});\n${body}\n`,
  );
  const child = spawn(process.execPath, [script], { stdio: 'ignore' });
  const timer = setTimeout(() => child.kill('SIGTERM'), 30_000);
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal });
    });
  });
};

describe('the watchdog', { timeout: 90_000 }, () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'beeuni-watchdog-'));
    writeFileSync(join(folder, 'termination-log'), '');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('ends a process whose event loop stands still, with a last word', async () => {
    assert.deepEqual(await run(folder, 'for (;;) {}'), { code: null, signal: 'SIGKILL' });
    assert.match(readFileSync(join(folder, 'termination-log'), 'utf8'), /event loop .* stood still/);
  });

  it('leaves a process alone whose event loop turns, and lets it end', async () => {
    const body = 'setTimeout(async () => { await stop(); process.exit(7); }, 3000);';
    assert.deepEqual(await run(folder, body), { code: 7, signal: null });
  });
});
