// What a provider's list of models means for the registry.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ProviderModel, providerModel } from '#schema/settings/providers.ts';
import { applyDiscovery, compareModels } from './provider-discovery.ts';

const LIMIT = 10;
const AT = '2026-11-30T12:00:00.000Z';
const model = (id: string, more: Record<string, unknown> = {}): ProviderModel => providerModel.parse({ id, ...more });
const compare = (models: readonly ProviderModel[], upstream: readonly string[]) => {
  const registry = [
    { id: 'acme', enabled: true, models },
    { id: 'other', enabled: true, models: [model('coder-large')] },
  ];
  return compareModels({ id: 'acme', models }, upstream, registry, LIMIT);
};

test('new, gone and returned models are told apart', () => {
  const models = [model('a'), model('b'), model('back', { retired: { since: AT, replacement: null } })];
  assert.deepEqual(compare(models, ['b', 'back', 'c', 'c']), {
    added: ['c'],
    retired: [{ id: 'a', replacement: 'acme/b' }],
    restored: ['back'],
    unusable: 0,
    leftOut: 0,
  });
});

test('a replacement is near, of the same provider first, and never a model that is gone too', () => {
  const models = [model('coder-large'), model('coder-large-2'), model('chat')];
  const replacement = (upstream: readonly string[]) => compare(models, upstream).retired.map((one) => one.replacement);
  assert.deepEqual(replacement(['coder-large-2', 'chat']), ['acme/coder-large-2']);
  assert.deepEqual(replacement(['chat'])[0], 'other/coder-large');
  assert.deepEqual(compare([model('x')], ['y']).retired, [{ id: 'x', replacement: null }]);
});

test('an empty list, and one as long as what is read, retire nothing', () => {
  assert.deepEqual(compare([model('a')], []).retired, []);
  const long = Array.from({ length: LIMIT }, (_, n) => `m${n}`);
  assert.deepEqual(compare([model('a')], long).retired, []);
  assert.deepEqual(compare([model('a')], long).added.length, LIMIT);
});

test('names that the registry cannot hold are counted, and no more models are added than fit', () => {
  assert.deepEqual(compare([], ['ok', 'not ok', 'x'.repeat(193), '../up']).unusable, 3);
  const full = Array.from({ length: 511 }, (_, n) => model(`m${n}`));
  const found = compare(full, ['new-1', 'new-2']);
  assert.deepEqual([found.added, found.unusable], [['new-1'], 1]);
});

test('applying marks, restores and adds; a retired model keeps its day, a new one is off', () => {
  const before = [
    model('a'),
    model('old', { retired: { since: AT, replacement: null } }),
    model('back', { retired: { since: AT, replacement: 'x/y' } }),
  ];
  const later = '2026-12-01T00:00:00.000Z';
  const found = compare(before, ['back', 'new']);
  const after = applyDiscovery(before, found, later);
  assert.deepEqual(
    after.map(({ id, enabled, retired }) => [id, enabled, retired?.since]),
    [
      ['a', true, later],
      ['old', true, AT],
      ['back', true, undefined],
      ['new', false, undefined],
    ],
  );
  assert.equal('retired' in (after[2] ?? {}), false);
});
