// Reading a ZIP archive that was put together here, byte by byte.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { unzip } from './unzip.ts';

/** An archive with these files; the local headers have an extra field that the directory lacks, as many writers do it. */
const zip = (files: Readonly<Record<string, { content: string; deflated: boolean; method?: number }>>): Buffer => {
  const local: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, { content, deflated, method }] of Object.entries(files)) {
    const data = deflated ? deflateRawSync(content) : Buffer.from(content);
    const header = Buffer.alloc(30);
    header.write('PK\x03\x04', 'latin1');
    header.writeUInt16LE(Buffer.byteLength(name), 26);
    header.writeUInt16LE(4, 28);
    const entry = Buffer.alloc(46);
    entry.write('PK\x01\x02', 'latin1');
    entry.writeUInt16LE(method ?? (deflated ? 8 : 0), 10);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt16LE(Buffer.byteLength(name), 28);
    entry.writeUInt32LE(offset, 42);
    const whole = Buffer.concat([header, Buffer.from(name), Buffer.alloc(4), data]);
    local.push(whole);
    directory.push(entry, Buffer.from(name));
    offset += whole.length;
  }
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...local, ...directory, end]);
};

describe('unzip', () => {
  const archive = zip({
    'a/stored': { content: 'one', deflated: false },
    'b/deflated': { content: 'two'.repeat(100), deflated: true },
  });

  test('stored and deflated files come out as they went in', () => {
    const files = unzip(archive, ['b/deflated', 'a/stored']);
    assert.deepEqual(
      [...files].map(([name, content]) => [name, content.toString()]),
      [
        ['b/deflated', 'two'.repeat(100)],
        ['a/stored', 'one'],
      ],
    );
  });

  test('a missing file, an unknown method and another kind of file are refused by name', () => {
    assert.throws(() => unzip(archive, ['c']), /lacks c/);
    assert.throws(
      () => unzip(zip({ d: { content: 'x', deflated: false, method: 12 } }), ['d']),
      /d is compressed by method 12/,
    );
    assert.throws(() => unzip(Buffer.from('no archive'), []), /not a ZIP archive/);
  });
});
