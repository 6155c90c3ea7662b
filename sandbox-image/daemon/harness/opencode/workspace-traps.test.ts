// What in a workspace would hold OpenCode up, and what becomes of it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { createLogger } from '#base/log.ts';
import { cpuMsOf } from '#test/support/cpu-time.ts';
import { until } from '#test/support/until.ts';
import { clearPipes, clearTraps } from './workspace-traps.ts';

describe('clearTraps', () => {
  const workspace = mkdtempSync(join(tmpdir(), 'beeuni-traps-'));
  let logged: string[];
  beforeEach(() => {
    rmSync(workspace, { recursive: true, force: true });
    mkdirSync(join(workspace, '.opencode'), { recursive: true });
    logged = [];
  });
  after(() => rmSync(workspace, { recursive: true, force: true }));
  const clear = () => clearTraps(workspace, createLogger({ level: 'warn', write: (line) => logged.push(line) }));
  const at = (path: string): string => {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    return join(workspace, path);
  };

  it('FE5 removes pipes that git reads in any folder, and leaves those of other names', async () => {
    for (const path of ['a/b/.gitignore', 'a/.gitattributes', 'a/mine', 'node_modules/x/.gitignore']) {
      execFileSync('mkfifo', [at(path)]);
    }
    writeFileSync(at('a/b/c/.gitignore'), 'x');
    symlinkSync('..', at('a/loop'));
    const reader = spawn('cat', [at('a/b/.gitignore')]);
    const ended = new Promise((resolve) => reader.on('exit', resolve));
    await clearPipes(workspace, new AbortController().signal, createLogger({ level: 'error', write: () => {} }));
    await ended;
    const left = ['a/b/.gitignore', 'a/.gitattributes', 'a/mine', 'a/b/c/.gitignore'].filter((path) =>
      existsSync(at(path)),
    );
    assert.deepEqual(left, ['a/mine', 'a/b/c/.gitignore']);
  });

  it('leaves a workspace with ordinary files as it is', () => {
    writeFileSync(at('opencode.json'), '{}');
    writeFileSync(at('.opencode/plugin/x.js'), 'x');
    symlinkSync('plugin', at('.opencode/plugins'));
    symlinkSync('nowhere', at('.opencode/broken'));
    assert.equal(clear(), undefined);
    assert.deepEqual(logged, []);
    for (const path of ['opencode.json', '.opencode/plugin/x.js']) assert.ok(existsSync(at(path)));
  });

  it('FE5 removes pipes where OpenCode looks, and touches none elsewhere', () => {
    const traps = ['opencode.json', '.opencode/opencode.json', '.opencode/command/deep/x.md'];
    for (const path of [...traps, 'pipe', 'src/opencode.json']) execFileSync('mkfifo', [at(path)]);
    assert.equal(clear(), undefined);
    for (const path of traps) assert.ok(!existsSync(at(path)), path);
    for (const path of ['pipe', 'src/opencode.json']) assert.ok(existsSync(at(path)), path);
    assert.equal(logged.length, 3);
  });

  it('FE5 lets go whoever waits for a pipe', { timeout: 10_000 }, async () => {
    execFileSync('mkfifo', [at('opencode.json')]);
    const waiting = spawn('cat', [at('opencode.json')], { stdio: 'ignore' });
    const ended = new Promise((resolve) => waiting.once('exit', resolve));
    try {
      await until('it waits for the other end', () =>
        /\(cat\) S /.test(readFileSync(`/proc/${waiting.pid}/stat`, 'latin1')),
      );
      clear();
      assert.equal(await ended, 0);
    } finally {
      waiting.kill('SIGKILL');
    }
  });

  it('FE5 removes a pipe in the place of the whole folder', () => {
    rmSync(at('.opencode'), { recursive: true, force: true });
    execFileSync('mkfifo', [join(workspace, '.opencode')]);
    assert.equal(clear(), undefined);
    assert.ok(!existsSync(join(workspace, '.opencode')));
  });

  it('FE5 names a link to a device or a pipe, which a repository can hold, and does not remove it', () => {
    execFileSync('mkfifo', [at('pipe')]);
    for (const target of ['/dev/zero', 'pipe']) {
      symlinkSync(target, at('opencode.json'));
      assert.match(clear() ?? '', /^opencode\.json of the checkout leads to something that is no file/);
      assert.ok(existsSync(at('opencode.json')));
      rmSync(at('opencode.json'));
    }
  });

  it('FE5 names a configuration of a gigabyte', () => {
    writeFileSync(at('.opencode/opencode.jsonc'), '');
    truncateSync(at('.opencode/opencode.jsonc'), 1_073_741_824);
    assert.match(clear() ?? '', /has 1073741824 bytes/);
  });

  it('ends on a loop of links and on a very large folder', () => {
    symlinkSync('..', at('.opencode/up'));
    mkdirSync(at('.opencode/many'));
    for (let count = 0; count < 5_000; count += 1) writeFileSync(at(`.opencode/many/${count}`), '');
    const cpuMs = cpuMsOf(() => assert.equal(clear(), undefined));
    assert.ok(cpuMs < 2_000, `${cpuMs} ms of CPU`);
  });
});
