// The image ban and the window of screenshots, on messages.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { evictImages } from './images.ts';

const image = (name: string) => ({
  role: 'toolResult',
  content: [
    { type: 'text', text: name },
    { type: 'image', data: 'x', mimeType: 'image/png' },
  ],
});
const messages = [image('one'), { role: 'user', content: 'hi' }, image('two'), image('three')];
const kept = (keep: number | undefined): readonly boolean[] =>
  evictImages(messages, keep).map((message) => JSON.stringify(message).includes('image/png'));

describe('evictImages', () => {
  it('B7 leaves all images where there is no limit, and none where the agent sees none', () => {
    assert.deepEqual(kept(undefined), [true, false, true, true]);
    assert.deepEqual(kept(0), [false, false, false, false]);
    assert.match(JSON.stringify(evictImages(messages, 0)), /sees no images/);
  });

  it('B27 B28 changes each message at most once as a conversation grows, from a place that only moves forward', () => {
    const all = Array.from({ length: 24 }, (_, at) =>
      at % 3 === 1 ? { role: 'user', content: 'hi' } : image(`${at}`),
    );
    for (const keep of [0, 1, 2, 4, undefined]) {
      const shapes = all.map(() => new Set<string>());
      let before: readonly string[] = [];
      let place = 0;
      for (let size = 1; size <= all.length; size += 1) {
        const seen = evictImages(all.slice(0, size), keep).map((message) => JSON.stringify(message));
        for (const [at, text] of seen.entries()) shapes[at]?.add(text);
        const changed = before.flatMap((text, at) => (text === seen[at] ? [] : [at]));
        assert.ok(
          changed.length <= 1 && (changed[0] ?? place) >= place,
          `keep ${keep}, size ${size}: ${changed.join()}`,
        );
        place = changed[0] ?? place;
        before = seen;
      }
      assert.ok(shapes.every(({ size }) => size <= 2));
    }
  });

  it('B10 keeps the pixels of the newest messages and says where an older image was', () => {
    assert.deepEqual(kept(2), [false, false, true, true]);
    assert.match(JSON.stringify(evictImages(messages, 2)[0]), /one.*older image/);
    assert.ok(JSON.stringify(messages[0]).includes('image/png'), 'what is stored stays');
  });
});
