// The tool `memory` on real folders: its commands, what it refuses, and attacks on its paths.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import type { Tool } from './define-tool.ts';
import { PathRefusal, withFolder } from './files/folder-walk.ts';
import { writeEntry } from './files/write-entry.ts';
import { memoryTool } from './memory.ts';

describe('memory', () => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-memory-'));
  const workspace = join(root, 'workspace');
  const outside = join(root, 'outside');
  let tool: Tool;

  beforeEach(() => {
    for (const folder of [workspace, outside]) {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder);
    }
    writeFileSync(join(outside, 'secret.txt'), 'canary');
    tool = memoryTool(workspace);
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  const context = { agent: 'dev', threadId: 'root', callId: 'c', signal: new AbortController().signal };
  const run = async (args: Record<string, unknown>): Promise<string> => (await tool.run(args, context)).output;
  const create = (path: string, text = 'one\ntwo\n') => run({ command: 'create', path, file_text: text });
  const inMemory = (path: string): string => join(workspace, 'memory', path);

  it('A114 creates files with mode 0600 in folders with mode 0700, and leaves nothing else behind', async () => {
    assert.equal(await create('memory/a/b.md'), 'memory/a/b.md is written');
    assert.equal(readFileSync(inMemory('a/b.md'), 'utf8'), 'one\ntwo\n');
    assert.equal(statSync(inMemory('a/b.md')).mode & 0o777, 0o600);
    assert.equal(statSync(inMemory('a')).mode & 0o777, 0o700);
    assert.equal(statSync(inMemory('a/b.md')).nlink, 1);
    assert.deepEqual(readdirSync(inMemory('a')), ['b.md']);
  });

  it('A114 does not write over a file that exists', async () => {
    await create('memory/a.md');
    assert.equal(await create('memory/a.md', 'other'), 'Refused: a.md exists already.');
    assert.equal(readFileSync(inMemory('a.md'), 'utf8'), 'one\ntwo\n');
    assert.deepEqual(readdirSync(inMemory('')), ['a.md']);
  });

  it('A114 views a file with line numbers, in a range', async () => {
    await create('memory/a.md');
    assert.equal(await run({ command: 'view', path: 'memory/a.md' }), '     1\tone\n     2\ttwo\n     3\t');
    assert.equal(await run({ command: 'view', path: 'memory/a.md', view_range: [2, 2] }), '     2\ttwo');
    assert.match(await run({ command: 'view', path: 'memory/a.md', view_range: [9, 12] }), /^Refused: view_range/);
  });

  it('A114 lists a folder two levels deep', async () => {
    assert.match(await run({ command: 'view', path: 'memory' }), /is empty/);
    await create('memory/a/b/c.md');
    await create('memory/z.md', 'x');
    const lines = (await run({ command: 'view', path: 'memory/' })).split('\n').map((line) => line.trim());
    assert.deepEqual(lines, ['memory/ (bytes, path; two levels)', 'memory/a/', 'memory/a/b/', '1  memory/z.md']);
  });

  it('A114 replaces a text that stands there once, and refuses one that stands there twice or not at all', async () => {
    await create('memory/a.md', 'bee bee wasp');
    const replace = (old: string, next?: string) =>
      run({
        command: 'str_replace',
        path: 'memory/a.md',
        old_str: old,
        ...(next === undefined ? {} : { new_str: next }),
      });
    assert.match(await replace('bee', 'x'), /more than once/);
    assert.match(await replace('hornet', 'x'), /does not stand/);
    assert.equal(await replace('wasp', '$& $1'), 'memory/a.md is changed');
    assert.equal(readFileSync(inMemory('a.md'), 'utf8'), 'bee bee $& $1');
    await replace(' $& $1');
    assert.equal(readFileSync(inMemory('a.md'), 'utf8'), 'bee bee');
  });

  it('A114 inserts after a line, from the top to the end', async () => {
    await create('memory/a.md');
    const insert = (line: number, text: string) =>
      run({ command: 'insert', path: 'memory/a.md', insert_line: line, insert_text: text });
    await insert(0, 'zero\n');
    await insert(3, 'three');
    assert.equal(readFileSync(inMemory('a.md'), 'utf8'), 'zero\none\ntwo\nthree\n');
    assert.match(await insert(9, 'x'), /insert_line must be 0 to 4/);
  });

  it('A114 renames files and folders, never onto something', async () => {
    await create('memory/a.md');
    await create('memory/d/x.md');
    const rename = (from: string, to: string) => run({ command: 'rename', path: from, new_path: to });
    assert.equal(await rename('memory/a.md', 'memory/n/b.md'), 'memory/a.md is now memory/n/b.md');
    assert.equal(await rename('memory/d', 'memory/e'), 'memory/d is now memory/e');
    assert.ok(existsSync(inMemory('n/b.md')) && existsSync(inMemory('e/x.md')) && !existsSync(inMemory('a.md')));
    assert.match(await rename('memory/n/b.md', 'memory/e/x.md'), /^Refused: x.md exists already/);
    assert.match(await rename('memory/n', 'memory/e'), /^Refused: e exists already/);
    assert.match(await rename('memory/e', 'memory/e/f'), /^Refused: /);
    assert.match(await rename('memory/none', 'memory/g'), /does not exist/);
  });

  it('A114 deletes files and whole folders, and never the root', async () => {
    await create('memory/a/b/c.md');
    symlinkSync(outside, inMemory('a/link'));
    assert.equal(await run({ command: 'delete', path: 'memory/a' }), 'memory/a is deleted');
    assert.deepEqual(readdirSync(inMemory('')), []);
    assert.equal(readFileSync(join(outside, 'secret.txt'), 'utf8'), 'canary');
    assert.match(await run({ command: 'delete', path: 'memory' }), /^Refused: /);
    assert.match(await run({ command: 'delete', path: 'memory/a' }), /does not exist/);
  });

  it('A114 says in the answer what it refuses, and what an argument lacks', async () => {
    assert.equal(await run({ command: 'create', path: 'memory/a' }), 'Refused: create needs file_text.');
    assert.match(await run({ command: 'view', path: 'memory/none' }), /does not exist/);
    await assert.rejects(async () => tool.run({ command: 'steal', path: 'memory' }, context), /command: /);
  });

  for (const path of [
    '',
    '/',
    '..',
    '../outside/secret.txt',
    'memory/../../outside/secret.txt',
    'memory/..',
    'memory/./a',
    'memory//a',
    'memoryx/a',
    'memory.md',
    'Memory/a',
    'MEMORY',
    '/etc/passwd',
    'memory\\..\\a',
    'memory/a\u0000b',
    'memory/a\nb',
    'memory/.git/config',
    'memory/.GIT/config',
    `memory/${'a'.repeat(256)}`,
    `memory/${'a/'.repeat(40)}b`,
  ]) {
    it(`FF5 refuses the path ${JSON.stringify(path.slice(0, 40))} for every command`, async () => {
      mkdirSync(inMemory(''), { recursive: true });
      const more = { file_text: 'x', old_str: 'c', new_str: 'x', insert_line: 0, insert_text: 'x' };
      for (const command of ['view', 'create', 'str_replace', 'insert', 'delete', 'rename']) {
        const output = await run({ command, path, new_path: 'memory/other', ...more });
        assert.match(output, /^Refused: /, command);
        if (command === 'rename') continue;
        await create('memory/source');
        assert.match(await run({ command: 'rename', path: 'memory/source', new_path: path }), /^Refused: /);
      }
      assert.deepEqual(readdirSync(outside), ['secret.txt']);
      assert.equal(readFileSync(join(outside, 'secret.txt'), 'utf8'), 'canary');
    });
  }

  it('FF5 follows no link: as the root, in the middle, at the end', async () => {
    symlinkSync(outside, join(workspace, 'memory'));
    for (const command of ['view', 'create', 'delete']) {
      const output = await run({ command, path: 'memory/secret.txt', file_text: 'x' });
      assert.match(output, /^Refused: memory is no folder; links are not followed/, command);
    }
    assert.match(await run({ command: 'view', path: 'memory' }), /^Refused: /);
    rmSync(join(workspace, 'memory'));
    mkdirSync(inMemory(''));
    symlinkSync(outside, inMemory('middle'));
    symlinkSync(join(outside, 'secret.txt'), inMemory('end'));
    for (const path of ['memory/middle/secret.txt', 'memory/end']) {
      for (const command of ['view', 'str_replace', 'insert']) {
        const more = { old_str: 'canary', new_str: 'x', insert_line: 0, insert_text: 'x' };
        const output = await run({ command, path, ...more });
        assert.ok(output.startsWith('Refused: ') && !output.includes('canary'), `${command} ${path}: ${output}`);
      }
    }
    assert.match(await create('memory/middle/new'), /^Refused: /);
    assert.match(await run({ command: 'rename', path: 'memory/middle', new_path: 'memory/x' }), /is a link/);
    const listing = await run({ command: 'view', path: 'memory' });
    assert.match(listing, /memory\/middle \(no regular file, not followed\)/);
    assert.doesNotMatch(listing, /secret/);
    assert.equal(readFileSync(join(outside, 'secret.txt'), 'utf8'), 'canary');
    assert.deepEqual(readdirSync(outside), ['secret.txt']);
  });

  it('FF5 reads no hard link, pipe or folder, and waits for none', async () => {
    mkdirSync(inMemory('folder'), { recursive: true });
    linkSync(join(outside, 'secret.txt'), inMemory('hard'));
    execFileSync('mkfifo', [inMemory('pipe')]);
    assert.match(await run({ command: 'view', path: 'memory/hard' }), /is a hard link/);
    assert.match(await run({ command: 'view', path: 'memory/pipe' }), /no regular file/);
    assert.match(await run({ command: 'str_replace', path: 'memory/folder', old_str: 'a' }), /^Refused: /);
    assert.match(await create('memory/pipe/x'), /no folder/);
  });

  it('refuses a file that is no text or too large', async () => {
    mkdirSync(inMemory(''));
    writeFileSync(inMemory('binary'), Buffer.from([0xff, 0xfe, 0x00]));
    writeFileSync(inMemory('large'), Buffer.alloc(1_048_577, 'a'));
    assert.match(await run({ command: 'view', path: 'memory/binary' }), /no UTF-8 text/);
    assert.match(await run({ command: 'view', path: 'memory/large' }), /at most 1048576 are read/);
  });

  it('FF6 says that a folder was removed while it is used', async () => {
    mkdirSync(inMemory('gone'), { recursive: true });
    const written = withFolder(workspace, ['memory', 'gone'], true, async (folder) => {
      rmdirSync(inMemory('gone'));
      await writeEntry(folder, 'a.md', 'x', true);
    });
    await assert.rejects(written, (error) => error instanceof PathRefusal && /removed meanwhile/.test(error.message));
  });

  it('FF6 never leaves its root while folders are swapped for links under it', { timeout: 60_000 }, async () => {
    mkdirSync(inMemory('sub'), { recursive: true });
    writeFileSync(inMemory('sub/secret.txt'), 'mine');
    symlinkSync(outside, join(workspace, 'bait'));
    // Exchanges memory/sub, a folder, with a link to the folder outside, as fast as it can.
    const swapper = spawn(
      process.execPath,
      [
        '-e',
        `const { renameSync } = require('node:fs'); process.chdir(${JSON.stringify(workspace)});
         process.stdout.write('ready');
         for (;;) { try { renameSync('memory/sub', 'aside'); renameSync('bait', 'memory/sub'); renameSync('memory/sub', 'bait'); renameSync('aside', 'memory/sub'); } catch {} }`,
      ],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    );
    await new Promise((resolve) => swapper.stdout.once('data', resolve));
    let refused = 0;
    let worked = 0;
    const begunMs = performance.now();
    // On a busy machine a round takes long: then fewer rounds, once the race was seen from both sides.
    const isEnough = () => refused > 0 && worked > 0 && performance.now() - begunMs > 3_000;
    try {
      for (let at = 0; at < 400 && !isEnough(); at += 1) {
        const outputs = [
          await run({ command: 'view', path: 'memory/sub/secret.txt' }),
          await create(`memory/sub/new-${at}`, 'x'),
          await run({ command: 'str_replace', path: 'memory/sub/secret.txt', old_str: 'canary', new_str: 'stolen' }),
          await run({ command: 'delete', path: `memory/sub/new-${at}` }),
        ];
        for (const output of outputs) {
          assert.ok(!output.includes('canary'), output);
          if (output.startsWith('Refused: ')) refused += 1;
          else worked += 1;
        }
      }
    } finally {
      const ended = new Promise((resolve) => swapper.once('exit', resolve));
      swapper.kill('SIGKILL');
      await ended;
    }
    assert.deepEqual(readdirSync(outside), ['secret.txt']);
    assert.equal(readFileSync(join(outside, 'secret.txt'), 'utf8'), 'canary');
    assert.equal(lstatSync(join(outside, 'secret.txt')).nlink, 1);
    assert.ok(refused > 0 && worked > 0, `the race was run: ${refused} refused, ${worked} worked`);
  });
});
