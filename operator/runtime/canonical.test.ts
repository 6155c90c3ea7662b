// The hash that pods and policies carry: against Node's own implementation and on key order.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalJson, sameJson, sha256Hex, shortHash } from './canonical.ts';

test('K26 the hash of any text equals that of the platform', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 400, unit: 'binary' }), (text) => {
      assert.equal(sha256Hex(text), createHash('sha256').update(text, 'utf8').digest('hex'));
    }),
  );
});

test('K26 the order of keys and undefined fields do not change the hash', () => {
  assert.equal(shortHash({ a: 1, b: { c: [1, 2], d: undefined } }), shortHash({ b: { c: [1, 2] }, a: 1 }));
  assert.notEqual(shortHash({ a: [1, 2] }), shortHash({ a: [2, 1] }));
  assert.match(shortHash({}), /^[0-9a-f]{16}$/);
  assert.equal(canonicalJson({ b: null, a: 'x' }), '{"a":"x","b":null}');
  assert.ok(!sameJson({ a: 1 }, { a: '1' }));
});
