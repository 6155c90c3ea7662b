// Quantities: exact reading, canonical printing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bytesQuantity, cpuQuantity, parseQuantity } from './quantity.ts';

const amount = (text: string | number) => parseQuantity(text) ?? assert.fail(`${text} is no quantity`);

test('a quantity means the same in every notation', () => {
  assert.equal(amount('1'), amount('1000m'));
  assert.equal(amount('0.5'), amount('500m'));
  assert.equal(amount('1Gi'), amount('1024Mi'));
  assert.equal(amount('1.25Gi'), amount('1280Mi'));
  assert.ok(amount('1G') < amount('1Gi'));
});

test('quantities are printed as the API server stores them', () => {
  assert.equal(cpuQuantity(amount('1000m')), '1');
  assert.equal(cpuQuantity(amount('0.25')), '250m');
  assert.equal(bytesQuantity(amount('1.25Gi')), '1280Mi');
  assert.equal(bytesQuantity(amount('2048Mi')), '2Gi');
  assert.equal(bytesQuantity(amount(1000)), '1000');
});

test('printing and reading again changes no amount of whole units', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 14n }), (n) => {
      assert.equal(amount(bytesQuantity(n * 10n ** 9n)), n * 10n ** 9n);
      assert.equal(amount(cpuQuantity(n * 10n ** 6n)), n * 10n ** 6n);
    }),
  );
});
