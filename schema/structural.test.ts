import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { openApiSchemaOf } from './crd.ts';
import { AS_SET, integer, keyedBy, quantity, Timestamp } from './primitives.ts';
import { PROJECT_CONDITIONS, SESSION_CONDITIONS } from './resources/conditions.ts';
import { ProjectKind } from './resources/project.ts';
import { SessionKind } from './resources/session.ts';
import { celRulesOf, strictJsonSchema, toStructural } from './structural.ts';

const field = (schema: z.ZodType) => z.object({ x: schema.describe('A field.') });
const convert = (schema: z.ZodType) =>
  (toStructural(field(schema), 'spec')['properties'] as Record<string, unknown>)['x'];
const text = z.string().max(8);

test('what has no structural form is refused by name, never dropped', () => {
  const refused: readonly [z.ZodType, RegExp][] = [
    [text.refine((value) => value !== 'a'), /a refinement has no structural form/],
    [text.transform((value) => value.length), /zod (pipe|transform) has no structural form/],
    [z.unknown(), /zod unknown has no structural form/],
    [text.nullable(), /zod nullable has no structural form/],
    [z.strictObject({ y: text.describe('y') }), /a strict object would be refused after a rollback/],
    [z.union([text, z.boolean()]), /a union has no structural form/],
    [
      z.discriminatedUnion('t', [z.object({ t: z.literal('a') }), z.object({ t: z.literal('b') })]),
      /oneOf has no structural form/,
    ],
    [text.meta({ id: 'Shared' }), /has no structural form|definitions/],
    [text.meta({ examples: ['a'] }), /keyword examples has no structural form/],
  ];
  for (const [schema, message] of refused) assert.throws(() => convert(schema), message);
});

test('K4 a value without bounds is refused', () => {
  assert.throws(() => convert(z.string()), /spec\.x: a string needs maxLength or enum/);
  assert.throws(() => convert(z.int()), /an integer needs minimum, maximum and format/);
  assert.throws(() => convert(z.array(text).meta(AS_SET)), /a list needs maxItems/);
  assert.throws(() => convert(z.array(text).max(2)), /a list needs x-kubernetes-list-type/);
  assert.throws(() => convert(z.record(z.string(), text)), /a map needs maxProperties/);
});

test('K11 a field without a description, or with one above 160 characters, is refused', () => {
  assert.throws(() => toStructural(z.object({ x: text }), 'spec'), /spec\.x: needs a description/);
  assert.throws(
    () => toStructural(z.object({ x: text.describe('a'.repeat(161)) }), 'spec'),
    /has 161 of 160 characters/,
  );
});

test('bounds, formats, list types and defaults come through as the server writes them', () => {
  assert.deepEqual(convert(integer(0, 5).default(3)), {
    type: 'integer',
    minimum: 0,
    maximum: 5,
    format: 'int64',
    default: 3,
    description: 'A field.',
  });
  assert.deepEqual(convert(z.int().gt(0).lt(5).meta({ format: 'int32' })), {
    type: 'integer',
    minimum: 1,
    maximum: 4,
    format: 'int32',
    description: 'A field.',
  });
  assert.deepEqual(convert(Timestamp), { type: 'string', format: 'date-time', maxLength: 32, description: 'A field.' });
  const list = convert(z.array(field(text)).max(2).meta(keyedBy('x'))) as Record<string, unknown>;
  assert.deepEqual(
    [list['x-kubernetes-list-type'], list['x-kubernetes-list-map-keys'], list['maxItems']],
    ['map', ['x'], 2],
  );
});

test('a quantity is int-or-string without a type, with its bounds as a CEL rule', () => {
  const node = convert(quantity('4Gi', '1Gi')) as Record<string, unknown>;
  assert.equal(node['x-kubernetes-int-or-string'], true);
  assert.equal('type' in node || 'anyOf' in node, false);
  assert.deepEqual(
    celRulesOf(node).map(({ rule }) => rule.message),
    ['must be between 1Gi and 4Gi'],
  );
});

test('the schema for editors refuses unknown keys at every level and has no Kubernetes words', () => {
  const schema = strictJsonSchema(z.object({ a: z.object({ b: text }), c: z.record(z.string(), text).meta(AS_SET) }));
  const a = (schema['properties'] as Record<string, Record<string, unknown>>)['a'];
  assert.deepEqual([schema['additionalProperties'], a?.['additionalProperties']], [false, false]);
  assert.doesNotMatch(JSON.stringify(schema), /x-kubernetes|\$schema/);
});

test('D2 K12 no field of a spec names a harness choice, a token or an e-mail address', () => {
  for (const kind of [ProjectKind, SessionKind]) {
    const properties = JSON.stringify(
      (openApiSchemaOf(kind as never)['properties'] as Record<string, unknown>)['spec'],
    );
    const names = [...properties.matchAll(/"([A-Za-z]+)":\{/g)].map(([, name]) => name?.toLowerCase() ?? '');
    assert.ok(names.length > 20);
    const allowed = ['restarttoken', 'synctoken', 'piharness'];
    assert.deepEqual(
      names.filter((name) => /harness|email|owner|token|password/.test(name) && !allowed.includes(name)),
      [],
    );
  }
});

test('every reason is a word that the API takes, and every one says when it is true', () => {
  let count = 0;
  for (const conditions of [PROJECT_CONDITIONS, SESSION_CONDITIONS]) {
    for (const [type, words] of Object.entries(conditions)) {
      for (const reasons of [words.True, words.False, words.Unknown]) {
        for (const [reason, when] of Object.entries(reasons as Record<string, string>)) {
          count += 1;
          assert.match(reason, /^[A-Z][A-Za-z0-9]{0,63}$/);
          assert.ok(when.length > 10, `${type} ${reason}`);
        }
      }
    }
  }
  assert.ok(count > 120, String(count));
  assert.equal(Object.keys(SESSION_CONDITIONS)[0], 'Ready');
});
