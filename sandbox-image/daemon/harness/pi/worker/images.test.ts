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

  it('B10 keeps the pixels of the newest messages and says where an older image was', () => {
    assert.deepEqual(kept(2), [false, false, true, true]);
    assert.match(JSON.stringify(evictImages(messages, 2)[0]), /one.*older image/);
    assert.ok(JSON.stringify(messages[0]).includes('image/png'), 'what is stored stays');
  });
});
