// Event data that always fits and can always be stored.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { boundData, boundedJson, MAX_DATA_CHARACTERS, storableText } from './bound-event.ts';

describe('boundData', () => {
  it('keeps data that is small as it is', () => {
    const data = { part: { text: 'hello', n: 1, list: [true, null] } };
    assert.deepEqual(boundData(data), data);
  });

  it('cuts long texts and keeps the rest', () => {
    const result = boundData({ a: 'x'.repeat(1_000_000), b: 'kept' });
    assert.equal(result['b'], 'kept');
    assert.ok(JSON.stringify(result).length <= MAX_DATA_CHARACTERS);
    assert.match(String(result['a']), /^x+ …\[cut\]$/);
  });

  it('gives up on data that is large in another way, and says so', () => {
    assert.deepEqual(boundData({ list: Array.from({ length: 200_000 }, (_, at) => at) }), { cut: true });
  });

  it('is written as JSON in one pass with the same result', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 30 })), (data) => {
        assert.deepEqual(JSON.parse(boundedJson(data)), JSON.parse(JSON.stringify(boundData(data))));
      }),
      { numRuns: 100 },
    );
    const odd = { text: 'a\u0000b\ud800', big: 5n, long: 'x'.repeat(300_000) };
    assert.equal(boundedJson(odd), JSON.stringify(boundData(odd)));
  });

  it('fits for any data and holds no NUL or lone surrogate', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (data) => {
        const text = JSON.stringify(boundData(data));
        return text.length <= MAX_DATA_CHARACTERS && !text.includes('\\u0000') && !/\\ud[89a-f]/.test(text);
      }),
      { numRuns: 100 },
    );
    assert.equal(storableText('a\u0000b\ud800c'), 'a\uFFFDb\uFFFDc');
  });
});
