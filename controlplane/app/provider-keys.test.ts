// How the keys of a provider are read: from the database or a Secret, how old they may be, and what is said when not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnavailableError } from '#base/errors.ts';
import { PROVIDER_SECRET_TYPE, providerInput } from '#schema/settings/providers.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import type { ReadSecret } from './project-ports.ts';
import { makeReadProviderKeys } from './provider-keys.ts';
import type { RegisteredProvider, SealedKey } from './provider-ports.ts';

type SecretAnswer = Awaited<ReturnType<ReadSecret>>;

const registered = (more: Partial<RegisteredProvider>): RegisteredProvider => {
  const {
    id: _id,
    api_key: _key,
    credential: _credential,
    ...definition
  } = providerInput.parse({
    id: 'acme',
    kind: 'openai-compatible',
    base_url: 'https://acme.example/v1',
  });
  return { ...definition, id: 'acme', keys: [], generation: 1, ...more };
};
const found = (data: Record<string, string>, type: string = PROVIDER_SECRET_TYPE): SecretAnswer => ({
  kind: 'found',
  secret: {
    type,
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value)])),
    resourceVersion: '1',
  },
});

const bench = (first: SecretAnswer) => {
  const clock = manualClock();
  const state = { answer: first as SecretAnswer | Error, reads: 0, places: [] as string[] };
  const read = makeReadProviderKeys({
    clock,
    namespace: 'beeuni',
    unseal: (sealed) => {
      if (sealed.length === 0) throw new Error('a text was sealed with a key that is not in the key file');
      return sealed.toString();
    },
    readSecret: async (namespace, name) => {
      state.reads += 1;
      state.places.push(`${namespace}/${name}`);
      if (state.answer instanceof Error) throw state.answer;
      return state.answer;
    },
  });
  return { clock, state, read: async (provider: RegisteredProvider) => read(provider) };
};
const bySecret = registered({ secret: { name: 'keys' } });
const codeOf = async (work: Promise<unknown>): Promise<string> => {
  const error: unknown = await work.then(
    () => 'ok',
    (failure: unknown) => failure,
  );
  return error instanceof UnavailableError ? `${error.code}: ${error.message}` : String(error);
};

test('stored keys come in the order of the pool, and a provider without keys has none', async () => {
  const { read, state } = bench(found({}));
  const key = (id: string, text: string): SealedKey => ({ id, sealed: Buffer.from(text), lastFour: null, addedAt: '' });
  assert.deepEqual(await read(registered({ keys: [key('b', 'two'), key('a', 'one')] })), [
    { id: 'b', secret: 'two' },
    { id: 'a', secret: 'one' },
  ]);
  assert.deepEqual(await read(registered({})), []);
  assert.match(
    await codeOf(read(registered({ keys: [key('x', '')] }))),
    /^provider_key_unavailable: key x of provider acme cannot be opened/,
  );
  assert.equal(state.reads, 0);
});

test('a Secret of the installation gives its entries by name, is asked once for all who wait, and again after 3 s', async () => {
  const { read, state, clock } = bench(found({ us: 'sk-us\n', eu: 'sk-eu' }));
  const all = await Promise.all(Array.from({ length: 20 }, () => read(bySecret)));
  assert.deepEqual(all[19], [
    { id: 'eu', secret: 'sk-eu' },
    { id: 'us', secret: 'sk-us' },
  ]);
  assert.deepEqual(state.places, ['beeuni/keys']);
  state.answer = found({ eu: 'sk-new' });
  await clock.advance(2_999);
  assert.equal((await read(bySecret))[0]?.secret, 'sk-eu');
  await clock.advance(1);
  assert.deepEqual(await read(bySecret), [{ id: 'eu', secret: 'sk-new' }]);
  assert.equal(state.reads, 2);
});

test('while the API server is away what was read goes on for 10 minutes; a Secret that is gone ends at once', async () => {
  const { read, state, clock } = bench(found({ main: 'sk-one' }));
  await read(bySecret);
  state.answer = new UnavailableError('api_server_unavailable', 'the Kubernetes API server could not be reached');
  await clock.advance(599_999);
  assert.equal((await read(bySecret))[0]?.secret, 'sk-one');
  await clock.advance(1);
  assert.match(await codeOf(read(bySecret)), /^api_server_unavailable/);
  state.answer = found({ main: 'sk-one' });
  await read(bySecret);
  state.answer = { kind: 'not-found', message: 'Secret keys does not exist' };
  await clock.advance(3_000);
  assert.equal(await codeOf(read(bySecret)), 'provider_key_unavailable: Secret keys does not exist');
  state.answer = new UnavailableError('api_server_unavailable', 'the Kubernetes API server could not be reached');
  assert.match(await codeOf(read(bySecret)), /^api_server_unavailable/, 'what is gone does not come back');
});

test('a Secret that is no pool of keys is refused with its name and never with a value', async () => {
  const cases: readonly (readonly [SecretAnswer, RegExp])[] = [
    [found({ password: 'hunter2' }, 'Opaque'), /Secret keys is not of type beeuni\.dev\/provider-key/],
    [found({}), /Secret keys has no entry/],
    [found({ a: 'two\nlines' }), /entry a of Secret keys is no key/],
    [found({ A: 'sk-one' }), /entry A of Secret keys is no key/],
    [found(Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`k${n}`, 'sk-one']))), /has more than 10 entries/],
    [{ kind: 'access-denied', message: 'Secret keys may not be read; grant it with: kubectl x' }, /grant it with/],
  ];
  for (const [answer, message] of cases) {
    const said = await codeOf(bench(answer).read(bySecret));
    assert.match(said, message);
    assert.doesNotMatch(said, /hunter2|two|sk-one/);
  }
});
