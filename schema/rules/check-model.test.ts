// The one check of model names, and the layers that choose a name.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkModelName, isModelAllowed, type NamedProvider, splitModelName } from './check-model.ts';
import { effectiveAgent, effectiveModel } from './effective-model.ts';

const PROVIDERS: readonly NamedProvider[] = [
  {
    id: 'demo',
    enabled: true,
    models: [
      { id: 'large', enabled: true },
      { id: 'vendor/small', enabled: true },
      { id: 'old', enabled: false },
    ],
  },
  { id: 'off', enabled: false, models: [{ id: 'large', enabled: true }] },
];

const refusal = (name: string) => {
  const verdict = checkModelName(name, PROVIDERS);
  assert.equal(verdict.valid, false);
  return verdict.valid ? undefined : { code: verdict.code, suggestions: verdict.suggestions, message: verdict.message };
};

test('a registered and enabled model is valid, also with a slash in its own name', () => {
  assert.deepEqual(checkModelName('demo/vendor/small', PROVIDERS), {
    valid: true,
    provider: 'demo',
    model: 'vendor/small',
  });
});

test('A215 each refusal has its code and the nearest usable names', () => {
  assert.deepEqual(refusal('demo/larg')?.suggestions, ['demo/large']);
  assert.equal(refusal('demo/larg')?.code, 'unknown_model');
  assert.equal(refusal('demo/old')?.code, 'model_disabled');
  assert.equal(refusal('off/large')?.code, 'provider_disabled');
  assert.deepEqual(refusal('off/large')?.suggestions, ['demo/large']);
  assert.equal(refusal('large')?.code, 'unknown_model');
  assert.match(
    refusal('zzzzzzzzz/qqqqqqqqqqqqqqqqq')?.message ?? '',
    /registered are demo\/large, demo\/vendor\/small$/,
  );
});

test('a refusal without any usable model says so', () => {
  const verdict = checkModelName('a/b', []);
  assert.match(
    verdict.valid ? '' : verdict.message,
    /no model is registered and enabled; register a provider with POST \/v1\/workspace\/providers/,
  );
});

test('a name of 256 characters is cut in the message', () => {
  assert.ok((refusal(`demo/${'x'.repeat(250)}`)?.message.length ?? 0) < 250);
});

test('a project list lets exact names and provider/* through', () => {
  assert.equal(isModelAllowed('demo/large', null), true);
  assert.equal(isModelAllowed('demo/large', ['demo/*']), true);
  assert.equal(isModelAllowed('demo2/large', ['demo/*']), false);
  assert.equal(isModelAllowed('demo/large', ['demo/small']), false);
  assert.equal(isModelAllowed('demo/large', []), false);
});

test('names without two parts are not split', () => {
  for (const name of ['x', '/x', 'x/', '']) assert.equal(splitModelName(name), undefined, name);
});

test('A192 the session pin counts even when it is not usable, and A214 a stale default is skipped', () => {
  const isUsable = (name: string) => name.startsWith('demo/');
  const layers = { session: null, agent: 'gone/a', project: 'demo/p', platform: 'demo/q' };
  assert.deepEqual(effectiveModel(layers, isUsable), {
    value: 'demo/p',
    layer: 'Project',
    overrode: [{ layer: 'Platform', value: 'demo/q' }],
  });
  assert.equal(effectiveModel({ ...layers, session: 'gone/s' }, isUsable)?.value, 'gone/s');
  assert.equal(effectiveModel({ session: null, agent: null, project: null, platform: null }, isUsable), undefined);
});

test('the agent comes from the session, a declared project default, or the manifest', () => {
  const isDeclared = (name: string) => name === 'build' || name === 'review';
  const layers = { session: null, project: 'gone', manifest: 'build' };
  assert.equal(effectiveAgent(layers, isDeclared).layer, 'Manifest');
  assert.equal(effectiveAgent({ ...layers, project: 'review' }, isDeclared).value, 'review');
  assert.equal(effectiveAgent({ ...layers, session: 'gone' }, isDeclared).value, 'gone');
});

test('a retired model is refused with its replacement first, is proposed to nobody, and serves what runs already', () => {
  const retired = { id: 'large', enabled: true, retired: { replacement: 'demo/huge' } };
  const providers: readonly NamedProvider[] = [
    { id: 'demo', enabled: true, models: [retired, { id: 'huge', enabled: true }, { id: 'large-2', enabled: true }] },
  ];
  const verdict = checkModelName('demo/large', providers);
  assert.ok(!verdict.valid);
  assert.deepEqual([verdict.code, verdict.suggestions], ['model_disabled', ['demo/huge', 'demo/large-2']]);
  assert.match(verdict.message, /is retired: its provider no longer lists it; nearest: demo\/huge/);
  assert.equal(checkModelName('demo/large', providers, 'served').valid, true);
  const other = checkModelName('demo/larg', providers);
  assert.ok(!other.valid);
  assert.deepEqual(other.suggestions, ['demo/large-2']);
  const off = [{ id: 'demo', enabled: true, models: [{ ...retired, enabled: false }] }];
  assert.equal(checkModelName('demo/large', off, 'served').valid, false, 'disabled is the hard way');
});
