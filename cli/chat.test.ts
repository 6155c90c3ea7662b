// What a typed line and Ctrl-C mean in a conversation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onCtrlC, readTyped } from './chat.ts';
import { choicesOf, readPermission, requestText } from './human-requests.ts';

test('a line is a prompt, unless it begins with a word behind a slash or an exclamation mark', () => {
  assert.deepEqual(readTyped('  fix it '), { kind: 'prompt', text: 'fix it' });
  assert.deepEqual(readTyped('   '), { kind: 'nothing' });
  for (const [line, kind] of [
    ['/quit', 'leave'],
    ['/exit', 'leave'],
    ['/abort', 'abort'],
    ['/help', 'help'],
  ] as const)
    assert.deepEqual(readTyped(line), { kind });
  assert.deepEqual(readTyped('/review main now'), { kind: 'command', name: 'review', text: 'main now' });
  assert.deepEqual(readTyped('! ls -la'), { kind: 'shell', text: 'ls -la' });
  for (const line of ['/usr/bin is missing', '!', '/', 'a /b']) assert.equal(readTyped(line).kind, 'prompt', line);
});

test('A239 Ctrl-C ends a running turn first, and leaves when it was asked before or nothing runs', () => {
  assert.deepEqual([onCtrlC(true, false), onCtrlC(true, true), onCtrlC(false, false)], ['abort', 'leave', 'leave']);
});

test('A119 a permission is answered by its letter or word, and by nothing else', () => {
  assert.deepEqual(['o', ' Once ', 'y', 'a', 'always', 'r', 'no', 'yes please', ''].map(readPermission), [
    'once',
    'once',
    'once',
    'always',
    'always',
    'reject',
    'reject',
    undefined,
    undefined,
  ]);
});

test('A120 commas separate choices only where all parts are choices', () => {
  const data = { questions: [{ question: 'Which?', options: [{ label: 'A' }, { label: 'B' }] }, { question: 'Why?' }] };
  assert.deepEqual(choicesOf(data, 0, 'A, B'), ['A', 'B']);
  assert.deepEqual(choicesOf(data, 0, 'A, but later'), ['A, but later']);
  assert.deepEqual(choicesOf(data, 1, 'because, well'), ['because, well']);
  assert.equal(requestText({ kind: 'question', data }), 'Which? / Why?');
});
