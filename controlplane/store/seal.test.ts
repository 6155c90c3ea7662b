// Sealing, with keys made here.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { makeSeal, parseSealKeys } from './seal.ts';

const OLD = '00'.repeat(32);
const NEW = Buffer.alloc(32, 7).toString('base64');

test('what was sealed opens with the same context only', () => {
  const { seal, unseal } = makeSeal(parseSealKeys(OLD), randomBytes);
  const sealed = seal('sk-canary', 'provider:a');
  assert.equal(sealed.includes('canary'), false);
  assert.equal(unseal(sealed, 'provider:a'), 'sk-canary');
  assert.throws(() => unseal(sealed, 'provider:b'));
});

test('a key is rotated by a line above it: old texts open, new ones use the new key', () => {
  const old = makeSeal(parseSealKeys(OLD), randomBytes).seal('one', 'c');
  const both = makeSeal(parseSealKeys(`# keys\n${NEW}\n\n${OLD}\n`), randomBytes);
  assert.equal(both.unseal(old, 'c'), 'one');
  const fresh = both.seal('two', 'c');
  assert.equal(makeSeal(parseSealKeys(NEW), randomBytes).unseal(fresh, 'c'), 'two');
  assert.throws(() => makeSeal(parseSealKeys(OLD), randomBytes).unseal(fresh, 'c'), /not in the key file/);
});

test('every changed byte is noticed', () => {
  const { seal, unseal } = makeSeal(parseSealKeys(OLD), randomBytes);
  const sealed = seal('text', 'c');
  for (let at = 0; at < sealed.length; at += 1) {
    const damaged = Buffer.from(sealed);
    damaged[at] = (damaged[at] ?? 0) ^ 1;
    assert.throws(() => unseal(damaged, 'c'));
  }
});

test('a damaged key file is refused without showing the key', () => {
  assert.throws(
    () => parseSealKeys('c2VjcmV0'),
    (error: Error) => !error.message.includes('c2VjcmV0'),
  );
  assert.throws(() => parseSealKeys('# nothing\n'), /holds no key/);
});
