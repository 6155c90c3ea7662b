// Coverage of a desired object by an observed one, and quantities.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalQuantity, covers, quantityNanos } from './covers.ts';

test('what the server defaulted is no difference, a changed or missing field is', () => {
  const desired = { spec: { policyTypes: ['Ingress'], ingress: [{ ports: [{ port: 8000 }] }] } };
  const observed = {
    metadata: { uid: 'x' },
    spec: { ...desired.spec, ingress: [{ ports: [{ port: 8000, protocol: 'TCP' }] }] },
  };
  assert.ok(covers(observed, desired));
  assert.ok(!covers({ spec: { ...observed.spec, policyTypes: ['Ingress', 'Egress'] } }, desired));
  assert.ok(!covers({ spec: { policyTypes: ['Ingress'] } }, desired));
});

test('an empty list or map of strings is the same as an absent one, an empty object is not', () => {
  assert.ok(covers({ spec: {} }, { spec: { egress: [] } }));
  assert.ok(covers({ metadata: {} }, { metadata: { labels: {} } }));
  assert.ok(!covers({ name: 'data', persistentVolumeClaim: {} }, { name: 'data', emptyDir: {} }));
  assert.ok(!covers({ a: null }, { a: 1 }));
});

test('quantities are compared by amount, and other strings are not', () => {
  assert.ok(
    covers(
      { resources: { limits: { cpu: '1', memory: '1Gi' } } },
      { resources: { limits: { cpu: '1000m', memory: '1024Mi' } } },
    ),
  );
  assert.ok(covers({ emptyDir: { sizeLimit: '1Gi' } }, { emptyDir: { sizeLimit: '1024Mi' } }));
  assert.ok(!covers({ env: [{ value: '1' }] }, { env: [{ value: '1000m' }] }));
});

test('quantities are written as the API server writes them', () => {
  const cases = {
    '1000m': '1',
    '1024Mi': '1Gi',
    '1.5Gi': '1536Mi',
    '0.5': '500m',
    '1500m': '1500m',
    '1000Mi': '1000Mi',
    '0': '0',
    '2000': '2k',
    '.1': '100m',
  };
  for (const [given, canonical] of Object.entries(cases)) assert.equal(canonicalQuantity(given), canonical, given);
  assert.throws(() => canonicalQuantity('abc'), RangeError);
});

test('a canonical quantity is the same amount and canonical itself', () => {
  const suffix = fc.constantFrom('', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'Ti');
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1_000_000 }), suffix, (amount, unit) => {
      const canonical = canonicalQuantity(`${amount}${unit}`);
      return (
        quantityNanos(canonical) === quantityNanos(`${amount}${unit}`) && canonicalQuantity(canonical) === canonical
      );
    }),
  );
});

test('every object covers itself and what is left when fields are taken away', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), (object, seed) => {
      const keys = Object.keys(object);
      const fewer = Object.fromEntries(
        Object.entries(object).filter((_, at) => keys.length === 0 || at !== seed % keys.length),
      );
      return covers(object, object) && covers(object, fewer);
    }),
  );
});
