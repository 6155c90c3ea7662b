// Which stored conversation is gone on with, which is put aside, and what is cut off.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { findSessionFile } from './session-file.ts';

const HEADER = '{"type":"session","version":3,"id":"ses_1"}\n';

describe('findSessionFile', () => {
  let folder: string;
  const file = () => join(folder, '2026_ses_1.jsonl');
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'beeuni-sessions-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('A151 finds the conversation of an id by its name', () => {
    assert.deepEqual(findSessionFile(folder, 'ses_1', 1), { path: undefined, discarded: null });
    writeFileSync(file(), `${HEADER}{"type":"message"}\n`);
    assert.deepEqual(findSessionFile(folder, 'ses_1', 1), { path: file(), discarded: null });
    assert.equal(findSessionFile(folder, 'ses_2', 1).path, undefined);
  });

  it('FB8 cuts half a line off, however long it is', () => {
    writeFileSync(file(), `${HEADER}{"type":"message"}\n{"type":"mess${'x'.repeat(300_000)}`);
    assert.equal(findSessionFile(folder, 'ses_1', 1).path, file());
    assert.equal(readFileSync(file(), 'utf8'), `${HEADER}{"type":"message"}\n`);
  });

  it('FB8 known-bugs K11 K12 puts aside what is empty, headless, of another id, no file, or too large, and reads none of it', () => {
    const spoils: readonly (() => void)[] = [
      () => writeFileSync(file(), ''),
      () => writeFileSync(file(), '{"type":"message"}\n'),
      () => writeFileSync(file(), HEADER.replace('ses_1', 'ses_9')),
      () => writeFileSync(file(), HEADER.trim()),
      () => writeFileSync(file(), Buffer.from([0xff, 0xfe, 0x00, 0x0a])),
      () => {
        writeFileSync(file(), HEADER);
        truncateSync(file(), 2 * 1024 ** 3);
      },
      () => execFileSync('mkfifo', [file()]),
    ];
    spoils.forEach((spoil, at) => {
      spoil();
      const found = findSessionFile(folder, 'ses_1', at);
      assert.equal(found.path, undefined, `case ${at}`);
      assert.match(found.discarded ?? '', /put aside/);
    });
    assert.equal(readdirSync(folder).filter((name) => name.includes('.refused-')).length, spoils.length);
  });
});
