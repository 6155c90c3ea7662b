// Event data that always fits and can always be stored.
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { boundData, MAX_DATA_CHARACTERS, storableText } from './bound-event.ts';

describe('boundData', () => {
  it('keeps data that is small as it is', (t) => {
    const data = { part: { text: 'hello', n: 1, list: [true, null] } };
    t.assert.deepEqual(boundData(data), data);
  });

  it('cuts long texts and keeps the rest', (t) => {
    const result = boundData({ a: 'x'.repeat(1_000_000), b: 'kept' });
    t.assert.equal(result['b'], 'kept');
    t.assert.ok(JSON.stringify(result).length <= MAX_DATA_CHARACTERS);
    t.assert.match(String(result['a']), /^x+ …\[cut\]$/);
  });

  it('gives up on data that is large in another way, and says so', (t) => {
    t.assert.deepEqual(boundData({ list: Array.from({ length: 200_000 }, (_, at) => at) }), { cut: true });
  });

  it('fits for any data and holds no NUL or lone surrogate', (t) => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (data) => {
        const text = JSON.stringify(boundData(data));
        return text.length <= MAX_DATA_CHARACTERS && !text.includes('\\u0000') && !/\\ud[89a-f]/.test(text);
      }),
      { numRuns: 100 },
    );
    t.assert.equal(storableText('a\u0000b\ud800c'), 'a\uFFFDb\uFFFDc');
  });
});
