// That no echo of a key leaves, however the answer is cut, and that everything else leaves as it came.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeKeyMasks } from './key-mask.ts';

const KEY = 'sk-sk-canary-0123456789';
const HIDDEN = '*'.repeat(KEY.length);
const maskOf = makeKeyMasks();
const masked = (chunks: readonly string[], key: string | null = KEY): string => {
  const mask = maskOf(key === null ? undefined : { secret: key });
  return Buffer.concat([...chunks.map((chunk) => mask.push(Buffer.from(chunk))), mask.flush()]).toString();
};

test('FF11 a key is hidden wherever the answer is split into three', () => {
  const text = `a sk-sk-${KEY} b ${KEY}${KEY}sk-`;
  const wanted = `a sk-sk-${HIDDEN} b ${HIDDEN}${HIDDEN}sk-`;
  for (let one = 0; one <= text.length; one += 1) {
    for (let two = one; two <= text.length; two += 1) {
      assert.equal(masked([text.slice(0, one), text.slice(one, two), text.slice(two)]), wanted, `${one} ${two}`);
    }
  }
  assert.equal(masked(text.split('')), wanted);
});

test('FF11 only a tail that may begin the key waits', () => {
  const mask = maskOf({ secret: KEY });
  assert.equal(mask.push(Buffer.from('data: {}\n\n')).toString(), 'data: {}\n\n');
  assert.equal(mask.push(Buffer.from('a sk-')).toString(), 'a ');
  assert.equal(mask.push(Buffer.from('x')).toString(), 'sk-x');
});

test('FF11 without a key, or with a word in its place, an answer is left alone', () => {
  assert.equal(masked(['none of it'], null), 'none of it');
  assert.equal(masked(['none of it'], 'none'), 'none of it');
});
