// What a path of the workspace can reach: real files, and an attacker that swaps them while they are read.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { asBeeuniError } from '#base/errors.ts';
import { MAX_FILE_BYTES } from '#schema/wire/files.ts';
import { makeWorkspaceFiles, type WorkspaceFiles } from './workspace-files.ts';

const SECRET = 'outside-canary-77b1';

describe('files of a workspace', () => {
  let outer: string;
  let root: string;
  let files: WorkspaceFiles;
  beforeEach(() => {
    outer = mkdtempSync(join(tmpdir(), 'beeuni-files-'));
    root = join(outer, 'workspace');
    mkdirSync(join(root, 'src'), { recursive: true });
    mkdirSync(join(outer, 'workspace-other'));
    writeFileSync(join(root, 'src/a.txt'), 'inside');
    writeFileSync(join(outer, 'secret'), SECRET);
    writeFileSync(join(outer, 'workspace-other/secret'), SECRET);
    files = makeWorkspaceFiles(root);
  });
  afterEach(() => rmSync(outer, { recursive: true, force: true }));

  const codeOf = async (work: Promise<unknown>): Promise<string> => {
    try {
      return `no error: ${JSON.stringify(await work)}`;
    } catch (error) {
      return asBeeuniError(error)?.code ?? String(error);
    }
  };
  const text = (content: string) => ({ encoding: 'utf8' as const, content });

  test('reads a file, lists a folder and shows what each entry is', async () => {
    symlinkSync('a.txt', join(root, 'src/link'));
    assert.deepEqual(await files.read('src/a.txt'), {
      type: 'file',
      path: 'src/a.txt',
      sizeBytes: 6,
      encoding: 'utf8',
      content: 'inside',
      truncated: false,
    });
    const listed = await files.read('src');
    assert.deepEqual(listed.type === 'folder' && listed.entries, [
      { name: 'a.txt', type: 'file', sizeBytes: 6 },
      { name: 'link', type: 'link', sizeBytes: null },
    ]);
    assert.deepEqual((await files.read('')).type, 'folder');
  });

  test('writes a file as a whole, keeps its mode, and makes a new one', async () => {
    writeFileSync(join(root, 'run.sh'), 'old', { mode: 0o755 });
    assert.deepEqual(await files.write('run.sh', text('new')), { path: 'run.sh', sizeBytes: 3, created: false });
    assert.equal(readFileSync(join(root, 'run.sh'), 'utf8'), 'new');
    assert.equal(statSync(join(root, 'run.sh')).mode & 0o777, 0o755);
    const bytes = Buffer.from([0, 255, 1]);
    await files.write('src/b.bin', { encoding: 'base64', content: bytes.toString('base64') });
    assert.deepEqual(readFileSync(join(root, 'src/b.bin')), bytes);
    const read = await files.read('src/b.bin');
    assert.deepEqual(read.type === 'file' && [read.encoding, read.content], ['base64', bytes.toString('base64')]);
    assert.deepEqual(readdirSync(join(root, 'src')), ['a.txt', 'b.bin']);
  });

  test('a file above the limit is shown in part, and is not written', async () => {
    writeFileSync(join(root, 'big'), 'ä'.repeat(MAX_FILE_BYTES));
    const read = await files.read('big');
    assert.ok(read.type === 'file' && read.truncated && read.encoding === 'utf8');
    assert.equal(read.sizeBytes, MAX_FILE_BYTES * 2);
    assert.equal(await codeOf(files.write('big2', text('ä'.repeat(MAX_FILE_BYTES)))), 'file_too_large');
    assert.equal(await codeOf(files.write('big2', { encoding: 'base64', content: '***' })), 'invalid_request');
  });

  for (const path of [
    '../secret',
    'src/../../secret',
    '/etc/passwd',
    'src//a.txt',
    'src/./a.txt',
    './../secret',
    '../workspace-other/secret',
    'src\\..\\..\\secret',
    'src/a.txt\0',
    'x'.repeat(300),
    'd/'.repeat(100) + 'x',
  ]) {
    test(`FF5 the path ${JSON.stringify(path.slice(0, 40))} is refused for reading and for writing`, async () => {
      assert.equal(await codeOf(files.read(path)), 'path_not_allowed');
      assert.equal(await codeOf(files.write(path, text('x'))), 'path_not_allowed');
      assert.equal(readFileSync(join(outer, 'secret'), 'utf8'), SECRET);
    });
  }

  test('FF5 links are followed neither at the end nor in the middle, and not written through', async () => {
    symlinkSync(join(outer, 'secret'), join(root, 'last'));
    symlinkSync(outer, join(root, 'middle'));
    symlinkSync('src', join(root, 'inside'));
    symlinkSync('loop', join(root, 'loop'));
    for (const path of ['last', 'middle/secret', 'middle', 'inside/a.txt', 'loop']) {
      assert.equal(await codeOf(files.read(path)), 'path_not_allowed', `read ${path}`);
      assert.equal(await codeOf(files.write(path, text('x'))), 'path_not_allowed', `write ${path}`);
    }
    assert.equal(readFileSync(join(outer, 'secret'), 'utf8'), SECRET);
  });

  test('FF5 a hard link shows nothing of outside, and a write does not reach it', async () => {
    linkSync(join(outer, 'secret'), join(root, 'hard'));
    assert.equal(await codeOf(files.read('hard')), 'path_not_allowed');
    await files.write('hard', text('mine'));
    assert.equal(readFileSync(join(outer, 'secret'), 'utf8'), SECRET);
    assert.equal((await files.read('hard')).type, 'file');
  });

  test('FF5 .git is not written, however it is spelt', async () => {
    mkdirSync(join(root, '.git'));
    for (const path of ['.git/config', '.GIT/config', 'src/.git/hooks']) {
      assert.equal(await codeOf(files.write(path, text('x'))), 'path_not_allowed');
    }
  });

  test('a FIFO, a socket folder entry and a missing name are told at once', { timeout: 5_000 }, async () => {
    execFileSync('mkfifo', [join(root, 'pipe')]);
    assert.equal(await codeOf(files.read('pipe')), 'invalid_request');
    assert.equal(await codeOf(files.write('pipe', text('x'))), 'invalid_request');
    assert.equal(await codeOf(files.read('none')), 'not_found');
    assert.equal(await codeOf(files.write('none/x', text('x'))), 'not_found');
    assert.equal(await codeOf(files.write('src', text('x'))), 'invalid_request');
    assert.equal(await codeOf(files.read('src/a.txt/x')), 'path_not_allowed');
  });

  test('FF6 a folder that is swapped for a link while it is used never leads out', async () => {
    const swapped = join(root, 'swap');
    mkdirSync(join(root, 'real'));
    writeFileSync(join(root, 'real/secret'), 'harmless');
    let running = true;
    const attack = (async () => {
      for (let n = 0; running; n += 1) {
        try {
          if (n % 2 === 0) {
            symlinkSync(outer, swapped);
          } else {
            unlinkSync(swapped);
            renameSync(join(root, 'real'), swapped);
            renameSync(swapped, join(root, 'real'));
          }
        } catch {
          // The other side was quicker.
        }
        await new Promise(setImmediate);
      }
    })();
    let seen = 0;
    for (let n = 0; n < 600; n += 1) {
      const read = await files.read(n % 2 === 0 ? 'swap/secret' : 'real/secret').catch(() => undefined);
      if (read?.type === 'file') {
        assert.notEqual(read.content, SECRET);
        seen += 1;
      }
      if (n % 10 === 0) await files.write('swap/secret', text('harmless')).catch(() => undefined);
    }
    running = false;
    await attack;
    assert.ok(seen > 0, 'nothing was ever read');
    assert.equal(readFileSync(join(outer, 'secret'), 'utf8'), SECRET);
  });
});
