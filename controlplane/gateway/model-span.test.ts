// The scanner that finds the model name in a body.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { findModelSpan, withModel } from './model-span.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const problem = (text: string): string | undefined => {
  const span = findModelSpan(bytes(text));
  return span.ok ? undefined : span.message;
};
const replaced = (text: string, model: string): string => {
  const span = findModelSpan(bytes(text));
  assert.ok(span.ok, text);
  return withModel(bytes(text), span, model).toString('utf8');
};

test('only the value of the top-level model changes, whatever surrounds it', () => {
  const body =
    '{ "messages":[{"role":"user","content":"\\"model\\":\\"x\\" é😀"}],\n"model" : "a/b" ,"n":1.50e2,"x":{"model":"in"}, "stream": true}';
  assert.equal(replaced(body, 'c'), body.replace('"a/b"', '"c"'));
});

test('a key that is written with escapes is found, and a second one is refused', () => {
  assert.equal(replaced('{"mod\\u0065l":"a"}', 'b'), '{"mod\\u0065l":"b"}');
  assert.match(problem('{"model":"a","mod\\u0065l":"b"}') ?? '', /twice/);
});

test('FC9 bodies that are no object, are cut, nested too deeply or name no model are refused', () => {
  for (const text of [
    '',
    ' ',
    '[]',
    '"x"',
    '{',
    '{"model"',
    '{"model":',
    '{"model":"a"',
    '{"model":"a"}x',
    '{"model":"a",}',
    '{model:"a"}',
    '{"model":"a" "b":1}',
    '{"a":1}',
    '{}',
    '{"model":1}',
    '{"model":null}',
    '{"model":["a"]}',
    '{"x":,"model":"a"}',
  ]) {
    assert.notEqual(problem(text), undefined, text);
  }
  assert.notEqual(problem(`{"model":"a","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`), undefined);
});

test('the flag stream is read from the top level only', () => {
  const flag = (text: string): boolean | undefined => {
    const span = findModelSpan(bytes(text));
    return span.ok ? span.stream : undefined;
  };
  assert.equal(flag('{"model":"a","stream":true}'), true);
  assert.equal(flag('{"model":"a","stream":false}'), false);
  assert.equal(flag('{"model":"a","x":{"stream":true}}'), false);
});

test('for any JSON object the result parses to the same object with the other model', () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), { maxKeys: 6 });
  fc.assert(
    fc.property(object, fc.string(), fc.string(), fc.boolean(), (rest, model, other, pretty) => {
      const body = { ...rest, model };
      const text = JSON.stringify(body, null, pretty ? 2 : undefined);
      const expected = { ...body, model: other };
      assert.deepEqual(JSON.parse(replaced(text, other)), JSON.parse(JSON.stringify(expected)));
    }),
    { numRuns: 300 },
  );
});
