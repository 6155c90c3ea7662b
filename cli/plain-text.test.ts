// What foreign text becomes before a terminal sees it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { plainJson, plainLine, plainText } from './plain-text.ts';

// oxlint-disable-next-line no-control-regex -- these are what must not be there
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

test('FF12 no control character is left, whatever the text and however it is cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(), (text, at) => {
      assert.doesNotMatch(plainText(text), UNSAFE);
      assert.doesNotMatch(plainText(text.slice(0, at)) + plainText(text.slice(at)), UNSAFE);
      assert.doesNotMatch(plainLine(text), /[\n\t]/);
      assert.doesNotMatch(plainJson({ [text]: text }), UNSAFE);
      assert.deepEqual(JSON.parse(plainJson([text])), [text]);
    }),
  );
});

test('FF12 known sequences stay visible and do nothing', () => {
  for (const [evil, shown] of [
    ['\u001b[2J', '␛[2J'],
    ['\u001b]0;title\u0007', '␛]0;title␇'],
    ['a\rb', 'a␍b'],
    ['a\bb', 'a␈b'],
    ['\u009b31m', '\ufffd31m'],
    ['abc\u202edef', 'abc\ufffddef'],
  ] as const)
    assert.equal(plainText(evil), shown);
});

test('words, tabs, line ends and emoji stay as they are', () => {
  const text = 'grüße\t👩‍💻 日本語\nline';
  assert.equal(plainText(text), text);
  assert.equal(plainText('a\r\nb'), 'a\nb');
});

test('a line is cut with an ellipsis', () => {
  assert.equal(plainLine('abcdef', 4), 'abc…');
  assert.equal(plainLine('  a\n\tb  '), 'a b');
});
