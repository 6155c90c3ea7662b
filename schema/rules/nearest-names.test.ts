import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean, editDistance, nearestNames } from './nearest-names.ts';

const MODELS = ['acme/coder-large', 'acme/coder-small', 'other/coder-large', 'other/vision'];

test('a swap of two neighbours is one edit', () => {
  assert.equal(editDistance('agnets', 'agents'), 1);
  assert.equal(editDistance('', 'abc'), 3);
  assert.equal(editDistance('kitten', 'sitting'), 3);
});

test('the same model under another provider is nearer than a similar spelling', () => {
  assert.deepEqual(nearestNames('acne/vision', MODELS), ['other/vision']);
  assert.deepEqual(nearestNames('coder-large', MODELS), ['acme/coder-large', 'other/coder-large']);
});

test('names that have little in common are not suggested', () => {
  assert.deepEqual(nearestNames('zzz/qqqqqqq', MODELS), []);
  assert.equal(didYouMean('zzzzz', MODELS), '');
});

test('suggestions read as a question', () => {
  assert.equal(didYouMean('acme/coder-larg', ['acme/coder-large']), '; did you mean "acme/coder-large"?');
  assert.equal(didYouMean('bb', ['ab', 'ac', 'bc']), '; did you mean "ab", "bc" or "ac"?');
});
