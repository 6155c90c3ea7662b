// What a project's models are said to be when no session of it could call one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { providerModel } from '#schema/settings/providers.ts';
import { checkProjectModels, type ModelNaming } from './project-models.ts';
import type { RegisteredProvider, Registry } from './provider-ports.ts';

const NAMING: ModelNaming = {
  defaults: { model: null, agent: null },
  allowedModels: null,
  gateway: true,
  config: undefined,
};
const registryOf = (...providers: readonly Partial<RegisteredProvider>[]): Registry => ({
  generation: 1,
  providers: providers.map((one) => ({
    id: 'acme',
    kind: 'openai-compatible',
    base_url: 'https://models.acme.example/v1',
    enabled: true,
    models: [providerModel.parse({ id: 'large' })],
    keys: [],
    generation: 1,
    ...one,
  })) as RegisteredProvider[],
});
const verdictOn = (naming: Partial<ModelNaming>, registry: Registry) =>
  checkProjectModels({ ...NAMING, ...naming }, registry, undefined);

test('ModelsValid is False when no model is registered or enabled, and says how to register one', () => {
  for (const registry of [registryOf(), registryOf({ enabled: false })]) {
    const { reason, message, invalid } = verdictOn({}, registry);
    assert.deepEqual([reason, invalid], ['UnknownModel', []]);
    assert.match(message, /^no session can call a model: no model is registered and enabled/);
    assert.match(message, /POST \/v1\/workspace\/providers/);
  }
  assert.equal(verdictOn({}, registryOf({})).reason, 'AllKnown');
});

test('ModelsValid is False when spec.models.allowed lets none of the usable models through', () => {
  const { reason, message } = verdictOn({ allowedModels: ['acme/small', 'other/*'] }, registryOf({}));
  assert.equal(reason, 'NotAllowed');
  assert.match(message, /spec\.models\.allowed lets no registered model through.*acme\/large/);
});

test('D8 ModelsValid is False while the flag llm_gateway is off, because a sandbox has no other way to a model yet', () => {
  const { reason, message } = verdictOn({ gateway: false }, registryOf({}));
  assert.equal(reason, 'NotAllowed');
  assert.match(message, /llm_gateway of the project is off.*turn it on/);
});

test('a name that is wrong is told of before all that', () => {
  const naming = { defaults: { model: 'acme/nope', agent: null }, gateway: false };
  const { reason, message } = verdictOn(naming, registryOf());
  assert.equal(reason, 'UnknownModel');
  assert.match(message, /^spec\.defaults\.model: no provider acme is registered.*POST \/v1\/workspace\/providers/);
});
