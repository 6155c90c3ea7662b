// The file tools on what a hostile workspace holds: nothing waits, nothing but regular files is opened.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { EDIT_OPERATIONS, imageTypeOf, READ_OPERATIONS, WRITE_OPERATIONS } from './file-operations.ts';

describe('the file tools', () => {
  let folder: string;
  const at = (name: string): string => join(folder, name);
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'beeuni-files-'));
    writeFileSync(at('plain.txt'), 'one\ntwo\n');
    execFileSync('mkfifo', [at('pipe')]);
    symlinkSync('pipe', at('link-to-pipe'));
    symlinkSync('/dev/zero', at('zero'));
    symlinkSync('/proc/self/environ', at('environ'));
    mkdirSync(at('folder'));
    writeFileSync(at('huge'), '');
    truncateSync(at('huge'), 1024 ** 3);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const ODD = ['pipe', 'link-to-pipe', 'zero', 'folder', 'environ'];

  it('FF8 refuses pipes, devices, folders and files of the kernel at once, to read and to write', async () => {
    for (const name of ODD) {
      const begin = performance.now();
      const refused = /no regular file|of the kernel|EISDIR|EACCES|EPERM/;
      await assert.rejects(READ_OPERATIONS.readFile(at(name)), refused, name);
      await assert.rejects(READ_OPERATIONS.detectImageMimeType(at(name)), refused, name);
      await assert.rejects(async () => {
        for await (const _chunk of READ_OPERATIONS.createReadStream(at(name))) return;
      }, refused);
      await assert.rejects(WRITE_OPERATIONS.writeFile(at(name), 'x'), refused, name);
      assert.ok(performance.now() - begin < 30_000, name);
    }
  });

  it('does not take a gigabyte into memory, and streams one', async () => {
    await assert.rejects(EDIT_OPERATIONS.readFile(at('huge')), /too much for this tool/);
    let bytes = 0;
    for await (const chunk of READ_OPERATIONS.createReadStream(at('huge'))) {
      bytes += chunk.length;
      if (bytes > 1_000_000) break;
    }
    assert.ok(bytes > 1_000_000);
  });

  it('reads, writes and shortens plain files', async () => {
    assert.equal((await READ_OPERATIONS.readFile(at('plain.txt'))).toString(), 'one\ntwo\n');
    await WRITE_OPERATIONS.mkdir(at('a/b'));
    await WRITE_OPERATIONS.writeFile(at('a/b/new.txt'), 'long text');
    await EDIT_OPERATIONS.writeFile(at('a/b/new.txt'), 'short');
    assert.equal(readFileSync(at('a/b/new.txt'), 'utf8'), 'short');
    await assert.rejects(READ_OPERATIONS.readFile(at('none')), /ENOENT/);
  });

  it('knows images by their first bytes', () => {
    assert.equal(imageTypeOf(Buffer.from([0xff, 0xd8, 0xff, 0xe0])), 'image/jpeg');
    assert.equal(imageTypeOf(Buffer.from('GIF89a...')), 'image/gif');
    assert.equal(imageTypeOf(Buffer.from('RIFF....WEBP')), 'image/webp');
    assert.equal(imageTypeOf(Buffer.from('plain')), null);
  });
});
