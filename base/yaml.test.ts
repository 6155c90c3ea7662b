import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_YAML_BYTES, parseYaml, yamlText } from './yaml.ts';

const problemOf = (text: string) => {
  const { problems } = parseYaml(text);
  assert.equal(problems.length, 1, JSON.stringify(problems.slice(0, 3)));
  return problems[0];
};

test('a value comes with the places of its keys and parts', () => {
  const { value, placeOf } = parseYaml('a:\n  b:\n    - c: 1\n');
  assert.deepEqual(value, { a: { b: [{ c: 1 }] } });
  assert.deepEqual(placeOf(['a', 'b', 0, 'c']), { line: 3, column: 10 });
  assert.deepEqual(placeOf(['a', 'b', 0, 'c'], 'key'), { line: 3, column: 7 });
});

test('a path that does not exist has the place of its nearest parent', () => {
  const { placeOf } = parseYaml('a:\n  b: 1\n');
  assert.deepEqual(placeOf(['a', 'missing', 'deeper']), { line: 2, column: 3 });
  assert.deepEqual(placeOf(['missing']), { line: 1, column: 1 });
});

test('a path leads through an alias', () => {
  assert.deepEqual(parseYaml('a: &x\n  k: 1\nb: *x\n').placeOf(['b', 'k']), { line: 2, column: 6 });
});

test('a duplicate key is a syntax error at the second key', () => {
  assert.deepEqual(problemOf('a: 1\na: 2\n'), {
    code: 'SyntaxError',
    message: 'map keys must be unique',
    line: 2,
    column: 1,
  });
});

test('a second document, a key that is no text and an open bracket are syntax errors', () => {
  for (const text of ['--- 1\n--- 2\n', '? [a]\n: b\n', 'a: [1, 2\n']) {
    assert.ok(
      parseYaml(text).problems.every(({ code }) => code === 'SyntaxError'),
      text,
    );
    assert.ok(parseYaml(text).problems.length > 0, text);
  }
});

test('a depth of 64 is read and one of 65 is too large', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  assert.deepEqual(parseYaml(nested(64)).problems, []);
  assert.equal(problemOf(nested(65))?.code, 'TooLarge');
  const indented = (depth: number) => Array.from({ length: depth }, (_, level) => `${' '.repeat(level)}a:`).join('\n');
  assert.deepEqual(parseYaml(indented(64)).problems, []);
  assert.equal(problemOf(`${indented(66)} 1`)?.code, 'TooLarge');
});

test('texts that are made to hang or crash a parser are too large, within a second', () => {
  const laughs = Array.from(
    { length: 9 },
    (_, i) =>
      `a${i}: &a${i} [${Array(9)
        .fill(i === 0 ? 'x' : `*a${i - 1}`)
        .join()}]`,
  );
  const texts = [
    '['.repeat(1e6),
    '- '.repeat(5e5),
    '? '.repeat(5e5),
    '- a\n'.repeat(2e5),
    laughs.join('\n'),
    'x'.repeat(MAX_YAML_BYTES + 1),
  ];
  for (const text of texts) {
    const started = performance.now();
    assert.equal(problemOf(text)?.code, 'TooLarge', text.slice(0, 20));
    assert.ok(performance.now() - started < 5_000, text.slice(0, 20));
  }
});

test('a key of the name __proto__ is a plain key', () => {
  const { value } = parseYaml('__proto__: {admin: true}\n');
  assert.equal((value as { admin?: boolean }).admin, undefined);
  assert.deepEqual(Object.keys(value as object), ['__proto__']);
});

test('text in a block may hold anything', () => {
  const text = `a: |\n${Array.from({ length: 200 }, () => '  [[[ {{ - ? : "').join('\n')}\n`;
  assert.deepEqual(parseYaml(text).problems, []);
});

test('what is printed reads back as the same value', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fc.oneof(fc.string(), fc.integer(), fc.boolean())),
      (value) => {
        assert.deepEqual({ ...(parseYaml(yamlText(value)).value as object) }, { ...value });
      },
    ),
    { numRuns: 50 },
  );
});
