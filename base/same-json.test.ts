// Equality of JSON values.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sameJson } from './same-json.ts';

test('a value equals its copy with keys in another order, and no other value', () => {
  const turned = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(turned);
    return Object.fromEntries(
      Object.entries(value)
        .map(([key, inner]) => [key, turned(inner)] as const)
        .reverse(),
    );
  };
  fc.assert(fc.property(fc.jsonValue(), (value) => sameJson(value, turned(structuredClone(value)))));
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const canonical = (value: unknown): string =>
        JSON.stringify(value, (_key, inner: unknown) =>
          typeof inner === 'object' && inner !== null && !Array.isArray(inner)
            ? Object.fromEntries(Object.entries(inner).sort(([x], [y]) => (x < y ? -1 : 1)))
            : inner,
        );
      assert.equal(sameJson(a, b), canonical(a) === canonical(b));
    }),
  );
  assert.equal(sameJson({ a: 1 }, { a: 1, b: undefined }), true);
  assert.equal(sameJson({ a: null }, {}), false);
  assert.equal(sameJson([1, 2], [2, 1]), false);
  assert.equal(sameJson([], {}), false);
});
