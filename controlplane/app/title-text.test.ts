// The title in what a model says, and the question that it is asked.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_TITLE, titleOf, titleQuestion } from './title-text.ts';

test('a title is the first line with words, without what models put around it', () => {
  const cases: readonly (readonly [answer: string, title: string | undefined])[] = [
    ['Fix the login form', 'Fix the login form'],
    ['\n\n  "Fix the login form."  \nMore words', 'Fix the login form'],
    ['**Title: Fix the login form**', 'Fix the login form'],
    ['# Title:   Fix   the\tlogin form', 'Fix the login form'],
    ['<think>the user wants\na title</think>\nFix the login form', 'Fix the login form'],
    ['<think>never ends', undefined],
    ['Исправить форму входа', 'Исправить форму входа'],
    ['ログインフォームを直す', 'ログインフォームを直す'],
    ['Fix\u0000 the\u202e login\ud800 form\u2028', 'Fix the login form'],
    ['---\n***\n" "', undefined],
    ['', undefined],
  ];
  for (const [answer, title] of cases) assert.equal(titleOf(answer), title, JSON.stringify(answer));
});

test('a title is never longer than its limit, and is cut between words where that leaves enough', () => {
  const long = titleOf('word '.repeat(100)) ?? '';
  assert.ok(Array.from(long).length <= MAX_TITLE && long.endsWith('word…'), long);
  const unbroken = titleOf('😀x'.repeat(100)) ?? '';
  assert.equal(Array.from(unbroken).length, MAX_TITLE);
  assert.ok(unbroken.isWellFormed());
  assert.ok((titleOf('x'.repeat(5_000_000)) ?? '').length <= MAX_TITLE);
});

test('a question shows the head of the prompt, and is well formed wherever it was cut', () => {
  assert.match(titleQuestion('add a test'), /^-----\nadd a test\n-----\nTitle:$/);
  const cut = titleQuestion(`${'a'.repeat(3_999)}😀 and more`);
  assert.ok(cut.length < 4_100 && cut.isWellFormed());
});
