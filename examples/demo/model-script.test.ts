// The script of the demo model, without HTTP.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decide, parseScript, type ScriptMessage, type ScriptTool, taskOf } from './model-script.ts';

const tool = (name: string, ...fields: string[]): ScriptTool => ({
  function: { name, parameters: { properties: Object.fromEntries(fields.map((field) => [field, {}])) } },
});
const TOOLS = [tool('bash', 'command', 'description'), tool('write', 'filePath', 'content'), tool('read', 'filePath')];

/** Plays a prompt as a harness would: every tool call gets the same result. */
const play = (prompt: string, result: string, tools = TOOLS): readonly string[] => {
  const messages: ScriptMessage[] = [
    { role: 'system', content: 'You are an agent.\n  Working directory: /workspace/repo\n' },
    { role: 'user', content: prompt },
  ];
  const seen: string[] = [];
  for (let round = 0; round < 6; round += 1) {
    const { step } = decide({ messages, tools });
    for (const call of step.calls ?? []) seen.push(`${call.name} ${call.arguments}`);
    if (step.calls === undefined) return [...seen, step.text ?? ''];
    messages.push({ role: 'assistant', content: step.text ?? '' }, { role: 'tool', content: result });
  }
  return seen;
};

test('a plain prompt writes the file that it names, commits it and says so', () => {
  const seen = play('Add a file HELLO.md that says hello', 'ok');
  assert.deepEqual(seen, [
    'write {"filePath":"/workspace/repo/HELLO.md","content":"hello\\n"}',
    `bash ${JSON.stringify({ command: "git add -- 'HELLO.md' && git commit -q -m 'Add HELLO.md' && git log -1 --oneline", description: 'Commits HELLO.md' })}`,
    'Done: HELLO.md says "hello" and is committed.',
  ]);
});

test('a harness without a write tool gets a shell command, and one with `path` gets that argument', () => {
  assert.match(
    play('Create docs/a.txt with "x y"', '', [tool('bash', 'command')])[0] ?? '',
    /mkdir -p -- 'docs' && printf/,
  );
  assert.match(
    play('Create a.txt', '', [tool('bash'), tool('write', 'path', 'content')])[0] ?? '',
    /"path":"\/workspace/,
  );
});

test('a commit that fails is told as a failure', () => {
  assert.match(play('Add HELLO.md', 'fatal: not a git repository').at(-1) ?? '', /did not work:\nfatal/);
});

test('a prompt that names no file is answered in words', () => {
  assert.deepEqual(play('How are you?', ''), ['You said: How are you?']);
});

test('tasks are read from the words of a prompt', () => {
  assert.deepEqual(taskOf('Please write notes/today.txt containing `one two`.'), {
    kind: 'write',
    path: 'notes/today.txt',
    content: 'one two\n',
  });
  assert.deepEqual(taskOf('What is in README.md?'), { kind: 'read', path: 'README.md' });
  assert.deepEqual(taskOf('run `ls -la`'), { kind: 'run', command: 'ls -la' });
  assert.equal(taskOf('e.g. nothing'), undefined);
});

test('lines of a script become steps, and colour lines belong to the step after them', () => {
  assert.deepEqual(
    parseScript('@@usage 7 3\n@@say hi there\n@@tools bash {"a":1} ;; read\n@@error 2 429 slow down\nx'),
    [
      { usage: { promptTokens: 7, completionTokens: 3 }, text: 'hi there' },
      {
        calls: [
          { name: 'bash', arguments: '{"a":1}' },
          { name: 'read', arguments: '{}' },
        ],
      },
      { mischief: { kind: 'error', times: 2, status: 429, message: 'slow down' } },
    ],
  );
});

test('the step that answers is the number of assistant messages after the script', () => {
  const messages = [
    { role: 'user', content: '@@say one\n@@say two' },
    { role: 'assistant', content: 'one' },
  ];
  assert.equal(decide({ messages, tools: TOOLS }).step.text, 'two');
});
