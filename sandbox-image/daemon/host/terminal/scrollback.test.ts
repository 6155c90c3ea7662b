// What is kept of a terminal's output.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createScrollback } from './scrollback.ts';

test('A201 the newest bytes are kept, at most the limit, and short output as a whole', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 60 }), (pieces) => {
      const ring = createScrollback(64);
      for (const piece of pieces) ring.add(Buffer.from(piece));
      const all = Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
      const kept = ring.read();
      assert.ok(kept.length <= 64);
      assert.ok(all.subarray(all.length - kept.length).equals(kept));
      assert.ok(kept.length >= Math.min(all.length, 64) - 4);
    }),
  );
});

test('a cut never begins inside a character', () => {
  const ring = createScrollback(10);
  ring.add(Buffer.from('äöü'.repeat(20)));
  assert.doesNotMatch(ring.read().toString('utf8'), /\ufffd/);
  assert.equal(ring.read().toString('utf8'), 'öüäöü');
});
