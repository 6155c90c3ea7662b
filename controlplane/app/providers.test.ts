// What the registry refuses to save, and when a change is of an older state or takes away what is named.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BeeuniError } from '#base/errors.ts';
import { type ProviderInput, providerInput } from '#schema/settings/providers.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { type Expected, parseConditions } from './if-match.ts';
import type { ProviderStore, StoredProvider } from './provider-ports.ts';
import { makeProvidersApp } from './providers.ts';

const AT = '2026-11-30T12:00:00.000Z';

/** The table of providers in memory. */
const storeInMemory = (): ProviderStore => {
  const rows = new Map<string, StoredProvider>();
  const all = (): readonly StoredProvider[] => [...rows.values()];
  return {
    list: async () => all(),
    find: async (id) => rows.get(id),
    create: async (id, { definition, keys = [] }) => {
      if (rows.has(id)) return undefined;
      const stored = { id, definition, keys, generation: 1, createdAt: AT, updatedAt: AT };
      rows.set(id, stored);
      return stored;
    },
    replace: async (id, generation, { definition, keys }) => {
      const before = rows.get(id);
      if (before?.generation !== generation) return undefined;
      const stored = { ...before, definition, keys: keys ?? before.keys, generation: generation + 1 };
      rows.set(id, stored);
      return stored;
    },
    remove: async (id, generation) =>
      (generation === undefined || rows.get(id)?.generation === generation) && rows.delete(id),
    announce: async () => undefined,
    generation: async () => 1,
    registry: async () => ({
      generation: 1,
      providers: all().map(({ id, definition, keys, generation }) => ({ ...definition, id, keys, generation })),
    }),
  };
};

const world = (listed: readonly string[] = []) => {
  const store = storeInMemory();
  const references = new Map<string, string>();
  const app = makeProvidersApp({
    store,
    seal: (text) => Buffer.from(text),
    readKeys: async () => [],
    resolveHost: async (host) => (host.endsWith('.svc') ? ['10.0.0.7'] : ['8.8.4.4']),
    listModels: async () => listed,
    findReferences: async (_id, models) =>
      [...references].flatMap(([model, place]) => (models === undefined || models.has(model) ? [place] : [])),
    onChange: async () => undefined,
    onSync: () => undefined,
    allowedAddresses: ['10.0.0.0/8'],
    clock: manualClock(),
  });
  return { app, store, references };
};
const input = (more: Record<string, unknown> = {}): Omit<ProviderInput, 'id'> => {
  const { id: _id, ...rest } = providerInput.parse({
    id: 'x',
    kind: 'openai-compatible',
    base_url: 'https://models.acme.example/v1',
    models: [{ id: 'large' }],
    ...more,
  });
  return rest;
};
const refusalOf = async (work: Promise<unknown>): Promise<BeeuniError> => {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  assert.ok(error instanceof BeeuniError, String(error));
  return error;
};
const revision = (...revisions: readonly number[]): Expected => ({ kind: 'revisions', revisions });
const KEY = { api_key: 'sk-test-0123456789' };

test('a key is not saved for a host over http, unless the installation allows the host or its addresses', async () => {
  const { app } = world();
  const open = { base_url: 'http://models.acme.example/v1' };
  const refused = await refusalOf(app.put('acme', input({ ...open, ...KEY }), false));
  assert.equal(refused.code, 'invalid_base_url');
  assert.match(refused.message, /a key is not sent over http.*use https$/);
  const bySecret = { credential: { secret: { name: 'keys' } } };
  assert.equal((await refusalOf(app.put('acme', input({ ...open, ...bySecret }), false))).code, 'invalid_base_url');
  await app.put('acme', input(open), false);
  assert.equal((await refusalOf(app.put('acme', input({ ...open, ...KEY }), false))).code, 'invalid_base_url');
  await app.put('inside', input({ base_url: 'http://model.demo.svc/v1', ...KEY }), false);
  await app.put('safe', input(KEY), false);
  const kept = await refusalOf(app.put('safe', input({ base_url: 'http://models.acme.example/v1' }), false));
  assert.equal(kept.code, 'invalid_base_url', 'a key that is stored already is a key too');
});

test('port 0 and the id that stands for roles are refused with what is wrong', async () => {
  const { app } = world();
  const port = await refusalOf(app.put('acme', input({ base_url: 'https://models.acme.example:0/v1' }), false));
  assert.deepEqual([port.code, /port 0/.test(port.message)], ['invalid_base_url', true]);
  const blocked = await refusalOf(app.put('acme', input({ base_url: 'https://models.acme.example:22/v1' }), false));
  assert.deepEqual([blocked.code, /port 22, .*choose another/.test(blocked.message)], ['invalid_base_url', true]);
  for (const work of [app.put('role', input(), false), app.create({ id: 'role', ...input() })]) {
    const id = await refusalOf(work);
    assert.equal(id.code, 'invalid_provider');
    assert.match(id.message, /the id role is reserved/);
  }
});

test('a retired model that is named, and a change of the kind, hold a provider as a deletion does', async () => {
  const { app, references } = world();
  const retired = { since: AT, replacement: null };
  const models = [{ id: 'large' }, { id: 'old', retired }];
  await app.put('acme', input({ models }), false);
  references.set('old', 'session team/talk: spec.model (acme/old)');
  for (const change of [{ models, enabled: false }, { models: [{ id: 'large' }] }, { models, kind: 'anthropic' }]) {
    const refused = await refusalOf(app.put('acme', input(change), false));
    assert.equal(refused.code, 'provider_referenced', JSON.stringify(change));
    assert.match(refused.message, /team\/talk/);
  }
  await app.put('acme', input({ models, headers: { 'x-title': 'y' } }), false);
  references.clear();
  references.set('large', 'workspace setting eval.judge.model (acme/large)');
  assert.equal(
    (await refusalOf(app.put('acme', input({ models, kind: 'anthropic' }), false))).code,
    'provider_referenced',
  );
  assert.equal((await app.put('acme', input({ models, kind: 'anthropic' }), true)).view.kind, 'anthropic');
});

test('with If-Match a provider is changed and removed only in the state that was read', async () => {
  const { app, store } = world();
  const { view } = await app.put('acme', input(), false);
  assert.equal(view.generation, 1);
  const next = await app.put('acme', input({ enabled: false }), false, revision(1));
  assert.equal(next.view.generation, 2);
  for (const work of [
    app.put('acme', input(), false, revision(1)),
    app.remove('acme', false, revision(1)),
    app.put('none', input(), false, revision(1)),
  ]) {
    const refused = await refusalOf(work);
    assert.deepEqual([refused.status, refused.code], [412, 'precondition_failed']);
  }
  const { details } = await refusalOf(app.remove('acme', false, revision(1)));
  assert.deepEqual((details as { current: unknown }).current, next.view);
  assert.equal(await store.find('none'), undefined, 'nothing is created for somebody who has read something');
  await app.remove('acme', false, revision(7, 2));
  assert.equal(await store.find('acme'), undefined);
});

test('with If-Match somebody who was faster between look and write is told of as well', async () => {
  const { app } = world();
  await app.put('acme', input(), false);
  const outcomes = await Promise.allSettled(
    [1, 2, 3].map((n) => app.put('acme', input({ headers: { 'x-title': `${n}` } }), false, revision(1))),
  );
  const codes = outcomes.flatMap((one) => (one.status === 'rejected' ? [(one.reason as BeeuniError).code] : []));
  assert.deepEqual(codes, ['precondition_failed', 'precondition_failed']);
});

test('20-control-plane §4 a list with more models than a provider may have is said to be cut', async () => {
  const names = Array.from({ length: 600 }, (_none, at) => `model-${at}`);
  const { app } = world(['large', ...names]);
  await app.put('acme', input(), false);
  for (const apply of [false, true]) {
    const found = await app.discover('acme', { apply, force: false }, new AbortController().signal);
    assert.equal(found.added.length, 511);
    assert.equal(found.message, 'a provider has at most 512 models here; 89 of its list are left out');
  }
  assert.equal((await app.get('acme')).models.length, 512);
  const again = await app.discover('acme', { apply: true, force: false }, new AbortController().signal);
  assert.match(again.message ?? '', /89 of its list/);
});

test('20-control-plane §4 a fallback is judged by what is there after the change', async () => {
  const { app } = world();
  const models = [{ id: 'large' }, { id: 'small' }];
  await app.put('acme', input({ models, fallback: ['acme/small'] }), false);
  const refused = await refusalOf(app.put('acme', input({ fallback: ['acme/small'] }), false));
  assert.match(refused.message, /^fallback\[0\]: /);
  await app.put('acme', input({ models, fallback: ['acme/small'], enabled: false }), false);
});

test('if-none-match only creates, and a weak validator is the revision that it names', async () => {
  const { app } = world();
  await app.put('acme', input(), false, parseConditions(undefined, '*'));
  const there = await refusalOf(app.put('acme', input(), false, parseConditions(undefined, ' * ')));
  assert.deepEqual([there.status, there.code], [412, 'precondition_failed']);
  await app.put('acme', input(), false, parseConditions('W/"1"', undefined));
  assert.equal((await refusalOf(app.put('acme', input(), false, parseConditions('W/"1"', undefined)))).status, 412);
  for (const [match, none] of [
    [undefined, '"1"'],
    ['"1"', '*'],
  ] as const) {
    assert.throws(() => parseConditions(match, none), /if-none-match must be \*/);
  }
});

test('A217 one key twice in a pool is refused, and not shown', async () => {
  const { app } = world();
  const pool = { credential: { api_keys: [{ value: 'sk-one-and-the-same' }, { value: 'sk-one-and-the-same' }] } };
  const refused = await refusalOf(app.put('acme', input(pool), false));
  assert.match(refused.message, /a pool holds each key once/);
  assert.ok(!JSON.stringify([refused.message, refused.details]).includes('sk-one'));
});
