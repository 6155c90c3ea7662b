// The provider of the environment follows the environment.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConflictError, NotFoundError, UnavailableError } from '#base/errors.ts';
import type { ProviderInput, ProviderView } from '#schema/settings/providers.ts';
import { registerEnvironmentModel } from './environment-model.ts';

const MODEL = { baseUrl: 'https://models.example/v1/', id: 'coder', apiKey: 'sk-one' };

const registry = () => {
  const puts: Omit<ProviderInput, 'id'>[] = [];
  let stored: Omit<ProviderInput, 'id'> | undefined;
  const ports = {
    providers: {
      get: async () => {
        if (stored === undefined) throw new NotFoundError('provider_not_found', 'there is no provider env');
        return { ...stored, base_url: stored.base_url.replace(/\/+$/, '') } as unknown as ProviderView;
      },
      put: async (_id: string, input: Omit<ProviderInput, 'id'>) => {
        puts.push(input);
        stored = input;
        return { created: true, view: {} as ProviderView };
      },
    },
    readKey: async () => stored?.credential?.api_keys?.[0]?.value,
  };
  return { puts, ports };
};

test('it is registered once, and a start without a change changes nothing', async () => {
  const { puts, ports } = registry();
  assert.equal(await registerEnvironmentModel(MODEL, ports), true);
  assert.equal(await registerEnvironmentModel(MODEL, ports), false);
  assert.equal(puts.length, 1);
});

test('another key, another model and another host are taken over, and a key that is gone is taken away', async () => {
  const { puts, ports } = registry();
  await registerEnvironmentModel(MODEL, ports);
  const changes = [
    { ...MODEL, apiKey: 'sk-two' },
    { ...MODEL, apiKey: 'sk-two', id: 'large' },
    { ...MODEL, apiKey: 'sk-two', id: 'large', baseUrl: 'https://elsewhere.example/v1' },
    { ...MODEL, apiKey: undefined },
  ];
  for (const model of changes) assert.equal(await registerEnvironmentModel(model, ports), true);
  assert.deepEqual(
    puts.map(({ credential }) => credential?.api_keys?.map(({ value }) => value)),
    [['sk-one'], ['sk-two'], ['sk-two'], ['sk-two'], []],
  );
});

test('of two replicas that start at once one registers it, and the other goes on', async () => {
  const { ports } = registry();
  const put = () => Promise.reject(new ConflictError('conflict', 'the provider changed meanwhile'));
  const late = { ...ports, providers: { ...ports.providers, put } };
  assert.equal(await registerEnvironmentModel(MODEL, late), false);
});

test('a registry that cannot be read is not taken for an empty one', async () => {
  const { puts, ports } = registry();
  const get = () => Promise.reject(new UnavailableError('database_unavailable', 'away'));
  await assert.rejects(
    registerEnvironmentModel(MODEL, { ...ports, providers: { ...ports.providers, get } }),
    UnavailableError,
  );
  assert.deepEqual(puts, []);
});
