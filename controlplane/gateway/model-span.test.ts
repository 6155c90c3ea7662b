// The scanner that finds the model name in a body.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { takesTier } from './effort.ts';
import { findModelSpan, withModel } from './model-span.ts';

const bytes = (text: string): Buffer => Buffer.from(text);
const problem = (text: string): string | undefined => {
  const span = findModelSpan(bytes(text));
  return span.ok ? undefined : span.message;
};
const replaced = (text: string, model: string): string => {
  const span = findModelSpan(bytes(text));
  assert.ok(span.ok, text);
  return Buffer.concat(withModel(bytes(text), span, bytes(JSON.stringify(model)))).toString('utf8');
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

const dropped = (text: string, kept: readonly string[] = []): unknown => {
  const span = findModelSpan(bytes(text));
  assert.ok(span.ok, text);
  return JSON.parse(
    Buffer.concat(withModel(bytes(text), span, bytes('"b"'), (tier) => !kept.includes(tier))).toString('utf8'),
  );
};

test('A216 a tier that is dropped leaves the rest of the body, wherever it stands and whichever API it is of', () => {
  for (const [text, rest] of [
    ['{"reasoning_effort":"high","model":"a"}', { model: 'b' }],
    ['{ "model" : "a" , "reasoning_effort" : "high" }', { model: 'b' }],
    ['{"n":1,"reasoning_effort":"h\\u0069gh","model":"a","m":2}', { n: 1, model: 'b', m: 2 }],
    ['{"reasoning":{"effort":"high"},"model":"a"}', { reasoning: {}, model: 'b' }],
    [
      '{"model":"a","reasoning": { "summary":"auto" , "effort": "high" , "x":[1]} }',
      { model: 'b', reasoning: { summary: 'auto', x: [1] } },
    ],
    ['{"output_config":{"effort":"high","format":{}},"model":"a"}', { output_config: { format: {} }, model: 'b' }],
    ['{"reasoning":{"effort":"low"},"model":"a","reasoning_effort":"high"}', { reasoning: {}, model: 'b' }],
    // What is no tier of the request is not ours.
    [
      '{"model":"a","reasoning_effort":null,"reasoning":{"effort":5}}',
      { model: 'b', reasoning_effort: null, reasoning: { effort: 5 } },
    ],
    [
      '{"model":"a","messages":[{"reasoning_effort":"high"}]}',
      { model: 'b', messages: [{ reasoning_effort: 'high' }] },
    ],
  ] as const) {
    assert.deepEqual(dropped(text), rest, text);
  }
  const mixed = '{"reasoning":{"effort":"low"},"model":"a","reasoning_effort":"high"}';
  assert.deepEqual(dropped(mixed, ['low']), { reasoning: { effort: 'low' }, model: 'b' });
});

test('A216 for any JSON object around it a dropped tier is gone and nothing else is', () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
  fc.assert(
    fc.property(object, object, fc.string(), fc.boolean(), (before, after, tier, pretty) => {
      const rest = { ...before, ...after, model: 'a' };
      const print = (body: object): string => JSON.stringify(body, null, pretty ? 1 : undefined);
      const text = print({ ...rest, reasoning_effort: tier });
      const first = print({ reasoning_effort: tier, ...rest });
      const expected = JSON.parse(JSON.stringify({ ...rest, model: 'b' }));
      assert.deepEqual(dropped(text), expected);
      assert.deepEqual(dropped(first), expected);
    }),
    { numRuns: 200 },
  );
});

test('A216 a model takes its own tiers; one without a list takes any if it reasons; auto asks for none', () => {
  const tiers = ['low', 'xhigh', 'auto'];
  const taken = (model: Parameters<typeof takesTier>[1]) => tiers.filter((tier) => takesTier(tier, model));
  assert.deepEqual(taken({ reasoning: true, variants: ['low', 'high'] }), ['low']);
  assert.deepEqual(taken({ reasoning: true, variants: [] }), []);
  assert.deepEqual(taken({ reasoning: true }), ['low', 'xhigh']);
  assert.deepEqual(taken({ reasoning: false }), []);
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
