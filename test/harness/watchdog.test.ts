// The watchdog in a process whose event loop stands still.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '#test/support/until.ts';

const MODULE = fileURLToPath(new URL('../../sandbox-image/daemon/host/process/watchdog.ts', import.meta.url));

type Exit = Readonly<{ code: number | null; signal: string | null }>;

/** Runs a module that starts the watchdog and then does `body`; it is killed after 30 s whatever happens. */
const run = (folder: string, body: string): Promise<Exit> => {
  const script = join(folder, 'watched.mjs');
  const terminationFile = JSON.stringify(join(folder, 'termination-log'));
  writeFileSync(
    script,
    `import { startWatchdog } from ${JSON.stringify(MODULE)};
const warnings = [];
const log = { warn: (message) => warnings.push(message) };
const stop = startWatchdog({ limitMs: 1_000, terminationFile: ${terminationFile}, log });
${body}
`,
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
    const body = 'setTimeout(() => { stop(); process.exit(7); }, 3000);';
    assert.deepEqual(await run(folder, body), { code: 7, signal: null });
  });

  it('watches again when somebody has ended what watches', async () => {
    const body = `
import { readFileSync } from 'node:fs';
const children = () => readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim().split(' ').filter(Boolean);
const [first] = children();
process.kill(Number(first), 'SIGKILL');
setInterval(() => {
  const [next] = children();
  if (next !== undefined && next !== first && warnings.length === 1) for (;;) {}
}, 10);`;
    assert.deepEqual(await run(folder, body), { code: null, signal: 'SIGKILL' });
    assert.match(readFileSync(join(folder, 'termination-log'), 'utf8'), /event loop .* stood still/);
  });

  it('leaves nothing behind when the process dies', async () => {
    const body = `
import { readFileSync, writeFileSync } from 'node:fs';
writeFileSync(${JSON.stringify(join(folder, 'child'))}, readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim());
process.kill(process.pid, 'SIGKILL');`;
    await run(folder, body);
    const pid = readFileSync(join(folder, 'child'), 'utf8');
    await until(
      'the shell is gone',
      () => !existsSync(`/proc/${pid}/cmdline`) || readFileSync(`/proc/${pid}/cmdline`).length === 0,
    );
  });
});
