// Which words are understood, and what is said of the others.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineCommand } from './command.ts';
import { CommandError } from './failure.ts';
import { parseWords } from './parse-words.ts';
import { ENTRIES, entriesFor, findCommand } from './tree.ts';

const command = defineCommand({
  summary: 'test',
  arguments: [
    { name: 'FIRST', summary: 'needed' },
    { name: 'SECOND', summary: 'not needed', optional: true },
  ],
  options: {
    json: { summary: 'a switch' },
    model: { summary: 'a value', value: 'NAME', short: 'm' },
    tag: { summary: 'many', value: 'NAME', many: true },
    source: { summary: 'one of', value: 'NAME', choices: ['daemon', 'all'] },
  },
  run: async () => undefined,
});
const parse = (...words: string[]) => parseWords('test', command, words);

test('switches are false, lists empty and values undefined when they are not given', () => {
  assert.deepEqual(parse('a'), {
    options: { json: false, model: undefined, tag: [], source: undefined, help: false },
    args: ['a'],
  });
});

test('options may stand anywhere, and -- ends them', () => {
  const { options, args } = parse('a', '--json', '-m', 'x', '--tag', '1', '--tag=2', '--', '--b');
  assert.deepEqual([options['json'], options['model'], options['tag'], args], [true, 'x', ['1', '2'], ['a', '--b']]);
});

for (const [words, message, hint] of [
  [[], /^FIRST is missing$/, /beeuni test --help/],
  [['a', 'b', 'c'], /does not know what to do with c/, /--help/],
  [['a', '--jsn'], /has no option --jsn; did you mean json\?/, /--help/],
  [['a', '--harness', 'pi'], /has no option --harness/, /beeuni projects harness/],
  [['a', '--token', 'x'], /has no option --token/, /BEEUNI_TOKEN/],
  [['a', '--model'], /^--model needs a value$/, /--help/],
  [['a', '-m'], /^--model needs a value$/, /--help/],
  [['a', '--json=1'], /^--json takes no value$/, /--help/],
  [['a', '--source', 'x'], /^--source takes daemon, all, not x$/, /^$/],
] as const) {
  test(`the words ${JSON.stringify(words)} are refused in a sentence, with what to do`, () => {
    assert.throws(
      () => parse(...words),
      (error: unknown) => {
        assert.ok(error instanceof CommandError);
        assert.equal(error.exitCode, 2);
        assert.match(error.message, message);
        assert.match(error.hint ?? '', hint);
        return true;
      },
    );
  });
}

test('the longest name of a command wins, and a group alone is no command', () => {
  const entries = entriesFor('people');
  const nameOf = (...words: string[]): string => {
    const found = findCommand(entries, words);
    return found.kind === 'command' ? `${found.entry.name} ${found.rest.join(' ')}`.trim() : found.kind;
  };
  assert.equal(nameOf('sessions', 'ls', '--json'), 'sessions ls --json');
  assert.equal(nameOf('connect', 'x'), 'sessions connect x');
  assert.equal(nameOf('tools'), 'tools ls');
  assert.equal(nameOf('validate', 'x'), 'validate x');
  assert.equal(nameOf('sessions'), 'group');
  assert.equal(nameOf('sessions', '--help'), 'group');
  assert.equal(nameOf('sessions', 'lst'), 'unknown');
  assert.equal(nameOf('constructor'), 'unknown');
});

test('A238 every command loads, has a summary, and every list takes --json', async () => {
  for (const { name, load } of ENTRIES) {
    const loaded = (await load()).command;
    assert.ok(loaded.summary.length > 5, name);
    if (/ (ls|list)$|^requests$|^connectors$/.test(name)) assert.ok('json' in loaded.options, `${name} has no --json`);
    for (const [option, { summary }] of Object.entries(loaded.options))
      assert.ok(summary.length > 3, `${name} ${option}`);
  }
});

test('A237 inside a sandbox only what works there is offered', () => {
  const names = entriesFor('sandbox').map(({ name }) => name);
  for (const name of ['connectors', 'tools ls', 'system-skills list', 'system-skills get', 'system-skills path'])
    assert.ok(names.includes(name), name);
  assert.ok(!names.some((name) => name.startsWith('sessions') || name === 'login'));
});
