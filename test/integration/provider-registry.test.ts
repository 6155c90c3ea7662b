// The provider registry through the REST API of a whole control plane: pools of keys, Secrets, discovery, references.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { BeeuniError } from '#base/errors.ts';
import { makeReadProviderKeys } from '#controlplane/app/provider-keys.ts';
import { makeRegistryReader } from '#controlplane/app/registry.ts';
import { makeProviderStore } from '#controlplane/store/provider-store.ts';
import { makeSeal, parseSealKeys } from '#controlplane/store/seal.ts';
import { apply } from '#kube/apply.ts';
import { PROJECTS, SECRETS } from '#kube/resource-types.ts';
import { getManifestRoute, syncNowRoute } from '#schema/rest/projects.ts';
import { createSessionRoute } from '#schema/rest/sessions.ts';
import * as routes from '#schema/rest/workspace.ts';
import { putSupervisorRoute } from '#schema/rest/workspace-settings.ts';
import { factsRoute, syncProjectRoute } from '#schema/wire/sync.ts';
import { type ApiWorld, startApiWorld } from '#test/support/api-world.ts';
import { startTestRemote, type TestRemote } from '#test/support/git-server.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const CANARY = `sk-canary-${randomBytes(12).toString('hex')}`;
const MANIFEST = 'beeuni_version: 2\ndefault_agent: build\nagents:\n  build: {}\n';
const AGENT = '---\nmode: primary\nmodel: acme/scripted-large\n---\nBuild things.\n';
const MANAGER = { manager: 'beeuni-test', force: true };
const APPLIED_WITHIN_MS = 5_000;
const CONDITION_WITHIN_MS = 10_000;

describe('the provider registry', () => {
  let world: ApiWorld;
  let provider: ScriptedProvider;
  let remote: TestRemote;
  /** What the provider lists: changed by tests. */
  const listed = ['scripted-large', 'scripted-small'];

  before(async () => {
    provider = await startScriptedProvider({ key: CANARY, models: listed });
    remote = await startTestRemote();
    world = await startApiWorld();
  });
  after(async () => {
    await world?.stop();
    await provider?.close();
    await remote?.close();
  });

  const at = (name: string) => ({ namespace: world.namespace, name });
  const codeOf = async (work: Promise<unknown>): Promise<string> => {
    try {
      await work;
      return 'ok';
    } catch (error) {
      assert.ok(error instanceof BeeuniError, String(error));
      return error.code;
    }
  };
  const definition = (more: Record<string, unknown> = {}) => ({
    kind: 'openai-compatible' as const,
    base_url: provider.url,
    models: [{ id: 'scripted-large' }, { id: 'scripted-small' }],
    ...more,
  });
  const create = (id: string, more: Record<string, unknown> = {}) =>
    world.alice.call(routes.createProviderRoute, { body: { id, ...definition(more) } });
  const put = (id: string, more: Record<string, unknown> = {}, force = false) =>
    world.alice.call(routes.putProviderRoute, {
      params: { id },
      query: { force: force ? 'true' : 'false' },
      body: definition(more),
    });
  const check = async (id: string) =>
    (await world.alice.call(routes.checkProviderRoute, { params: { id }, body: {} })).body;
  const discover = async (id: string, query: { apply?: 'true'; force?: 'true' } = {}) =>
    (await world.alice.call(routes.discoverProviderRoute, { params: { id }, query, body: {} })).body;

  test('createProvider keeps a key that no answer shows, and checkProvider reaches the provider with it', async () => {
    const { status, body } = await create('acme', { api_key: CANARY });
    assert.equal(status, 201);
    assert.equal(body.has_key, true);
    assert.deepEqual(
      body.credential.api_keys.map(({ id, last_four }) => [id, last_four]),
      [['default', CANARY.slice(-4)]],
    );
    assert.equal(await codeOf(create('acme')), 'already_exists');
    assert.deepEqual(await check('acme'), { reachable: true, message: null, models: listed });
    assert.equal(await codeOf(check('nobody')), 'provider_not_found');
  });

  test('A217 a pool keeps its order, its ids and the keys that a change does not send, up to ten', async () => {
    const keysOf = async () => {
      const { body } = await world.alice.call(routes.getProviderRoute, { params: { id: 'pool' } });
      return body.credential.api_keys.map(({ id, last_four }) => [id, last_four]);
    };
    const key = (n: number) => `sk-pool-key-number-${String(n).padStart(4, '0')}`;
    await create('pool', {
      credential: { api_keys: [{ id: 'eu', value: key(1) }, { value: key(2) }, { value: 'short' }] },
    });
    assert.deepEqual(await keysOf(), [
      ['eu', '0001'],
      ['key-1', '0002'],
      ['key-2', null],
    ]);
    await put('pool');
    assert.equal((await keysOf()).length, 3, 'a change without a credential keeps the pool');
    await put('pool', { credential: { api_keys: [{ id: 'key-1' }, { id: 'eu', value: key(9) }] } });
    assert.deepEqual(await keysOf(), [
      ['key-1', '0002'],
      ['eu', '0009'],
    ]);
    const many = (count: number) => ({
      credential: { api_keys: Array.from({ length: count }, (_, n) => ({ value: key(n) })) },
    });
    assert.equal(await codeOf(put('pool', many(10))), 'ok');
    assert.equal(await codeOf(put('pool', many(11))), 'invalid_request');
    const refusals: readonly Record<string, unknown>[] = [
      { credential: { api_keys: [{ id: 'ghost' }] } },
      {
        credential: {
          api_keys: [
            { id: 'a', value: key(1) },
            { id: 'a', value: key(2) },
          ],
        },
      },
      { credential: {} },
      { credential: { api_keys: [], secret: { name: 'x' } } },
      { api_key: key(1), credential: { api_keys: [] } },
    ];
    for (const refused of refusals)
      assert.equal(await codeOf(put('pool', refused)), 'invalid_provider', JSON.stringify(refused));
    assert.equal(await codeOf(put('pool', { api_key: 'two\nlines' })), 'invalid_request');
    await put('pool', { credential: { api_keys: [] } });
    assert.deepEqual(await keysOf(), []);
  });

  test('FF10 a stored key, a kept pool and a named Secret do not follow the base URL to another host', async () => {
    const elsewhere = { base_url: 'https://elsewhere.example/v1' };
    assert.equal(await codeOf(put('acme', elsewhere)), 'invalid_provider');
    assert.equal(
      await codeOf(put('acme', { ...elsewhere, credential: { api_keys: [{ id: 'default' }] } })),
      'invalid_provider',
    );
  });

  test('a fallback is judged like every other model name', async () => {
    const refused = await create('falls', { fallback: ['acme/scripted-lrge'] }).then(
      () => assert.fail('it was not refused'),
      (error: unknown) => error,
    );
    assert.ok(refused instanceof BeeuniError && refused.code === 'unknown_model', String(refused));
    assert.match(refused.message, /fallback\[0\].*nearest: acme\/scripted-large/);
    assert.equal(await codeOf(create('falls', { fallback: ['acme/scripted-large'] })), 'ok');
    await world.alice.call(routes.deleteProviderRoute, { params: { id: 'falls' } });
  });

  test('a provider of the kind anthropic is asked with its own headers', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers);
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ data: [{ type: 'model', id: 'claude-x' }], has_more: false }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    await create('messages', { kind: 'anthropic', base_url, api_key: 'sk-ant-key-of-a-test' });
    assert.deepEqual((await check('messages')).models, ['claude-x']);
    assert.deepEqual([seen[0]?.['x-api-key'], seen[0]?.['anthropic-version']], ['sk-ant-key-of-a-test', '2023-06-01']);
    assert.equal(seen[0]?.authorization, undefined);
    await world.alice.call(routes.deleteProviderRoute, { params: { id: 'messages' } });
    server.close();
  });

  test('of two changes at once one is told to read again, and none is mixed into the other', async () => {
    await create('race');
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, (_, n) => codeOf(put('race', { headers: { 'x-title': `writer ${n}` } }))),
    );
    assert.ok(
      outcomes.every((code) => code === 'ok' || code === 'conflict'),
      outcomes.join(),
    );
    const { body } = await world.alice.call(routes.getProviderRoute, { params: { id: 'race' } });
    assert.equal(body.generation, 1 + outcomes.filter((code) => code === 'ok').length);
    const params = { id: 'race' };
    const stale = { headers: { 'if-match': '"1"' } };
    const changed = { params, query: {}, body: definition() };
    assert.equal(await codeOf(world.alice.call(routes.putProviderRoute, changed, stale)), 'precondition_failed');
    assert.equal(
      await codeOf(world.alice.call(routes.deleteProviderRoute, { params, query: {} }, stale)),
      'precondition_failed',
    );
    const read = { headers: { 'if-match': `"${body.generation}"` } };
    assert.equal(await codeOf(world.alice.call(routes.putProviderRoute, changed, read)), 'ok');
  });

  test('FE6 the keys of a Secret are used, and a rotation or a revocation counts within 5 s', async (t) => {
    const secret = (type: string, data: Record<string, string>) =>
      apply(
        world.client,
        SECRETS,
        {
          metadata: at('provider-keys'),
          type,
          data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, Buffer.from(v).toString('base64')])),
        },
        MANAGER,
      );
    await create('by-secret', { credential: { secret: { name: 'provider-keys' } } });
    assert.match((await check('by-secret')).message ?? '', /Secret provider-keys does not exist/);
    await secret('beeuni.dev/provider-key', { main: `${CANARY}\n` });
    const takes = async (what: string, expected: boolean): Promise<void> => {
      const startedMs = performance.now();
      await until(what, async () => (await check('by-secret')).reachable === expected);
      const tookMs = performance.now() - startedMs;
      t.diagnostic(`${what} after ${Math.round(tookMs)} ms`);
      assert.ok(tookMs < APPLIED_WITHIN_MS, `${what} took ${Math.round(tookMs)} ms`);
    };
    await takes('the key of the Secret is used', true);
    await secret('beeuni.dev/provider-key', { main: 'sk-revoked' });
    await takes('the revoked key is no longer used', false);
    await secret('beeuni.dev/provider-key', { main: CANARY });
    await takes('the key is back', true);
    const stored = await world.client.get(SECRETS, at('provider-keys'));
    await world.client.delete(SECRETS, at('provider-keys'), { uid: stored?.metadata.uid ?? '' });
    await takes('a deleted Secret ends its keys', false);
    await secret('Opaque', { main: CANARY });
    await until('a Secret of another type is refused', async () =>
      /is not of type beeuni.dev\/provider-key/.test((await check('by-secret')).message ?? ''),
    );
  });

  test('a key that is taken away is gone from another replica within 5 s, under load', async (t) => {
    const store = makeProviderStore(world.database.pool);
    const keyFile = await readFile(join(world.process.folder, 'key'), 'utf8');
    const { unseal } = makeSeal(parseSealKeys(keyFile), randomBytes);
    const replica = makeRegistryReader({ store, clock: systemClock });
    const readSecret = async () => ({ kind: 'not-found', message: '' }) as const;
    const read = makeReadProviderKeys({ unseal, readSecret, namespace: 'x', clock: systemClock });
    const keysNow = async () => {
      const acme = (await replica.cached()).providers.find(({ id }) => id === 'race');
      return acme === undefined ? [] : (await read(acme)).map(({ secret }) => secret);
    };
    await put('race', { api_key: 'sk-first-key-of-the-race' });
    await until('the replica has the key', async () => (await keysNow()).includes('sk-first-key-of-the-race'));
    const startedMs = performance.now();
    await put('race', { api_key: 'sk-second-key-of-the-race' });
    await until('the first key is gone', async () => {
      const rounds = await Promise.all(Array.from({ length: 50 }, keysNow));
      return rounds.every((keys) => keys[0] === 'sk-second-key-of-the-race');
    });
    const tookMs = performance.now() - startedMs;
    t.diagnostic(`the key was replaced after ${Math.round(tookMs)} ms`);
    assert.ok(tookMs < APPLIED_WITHIN_MS, `${tookMs} ms`);
  });

  test('discoverProvider proposes and changes nothing, and applies only when it is asked', async () => {
    listed.splice(0, listed.length, 'scripted-small', 'scripted-large-2', 'bad name');
    const plan = await discover('pool');
    assert.match(plan.message ?? '', /refused the key/, 'the pool is empty, so the provider refuses');
    assert.deepEqual([plan.reachable, plan.applied, plan.retired], [false, false, []]);
    await put('pool', { api_key: CANARY });
    const proposed = await discover('pool');
    assert.deepEqual(proposed, {
      reachable: true,
      message: null,
      applied: false,
      added: ['scripted-large-2'],
      retired: [{ id: 'scripted-large', replacement: 'pool/scripted-small' }],
      restored: [],
      unusable: 1,
      references: [],
    });
    const modelsOf = async () =>
      (await world.alice.call(routes.getProviderRoute, { params: { id: 'pool' } })).body.models.map(
        ({ id, enabled, retired }) => [id, enabled, retired?.replacement],
      );
    assert.equal((await modelsOf()).length, 2, 'a proposal changes nothing');
    assert.equal((await discover('pool', { apply: 'true' })).applied, true);
    assert.deepEqual(await modelsOf(), [
      ['scripted-large', true, 'pool/scripted-small'],
      ['scripted-small', true, undefined],
      ['scripted-large-2', false, undefined],
    ]);
    const { body } = await world.alice.call(routes.validateModelsRoute, {
      body: { names: ['pool/scripted-large', 'pool/scripted-small', 'pool/scripted-large-2', 'pool/none'] },
    });
    assert.deepEqual(
      body.verdicts.map(({ valid, code, suggestions }) => [valid, code, suggestions[0]]),
      [
        [false, 'model_disabled', 'pool/scripted-small'],
        [true, null, undefined],
        [false, 'model_disabled', 'acme/scripted-large'],
        [false, 'unknown_model', body.verdicts[3]?.suggestions[0]],
      ],
    );
    assert.match(
      body.verdicts[0]?.message ?? '',
      /is retired: its provider no longer lists it; nearest: pool\/scripted-small/,
    );
    const { body: models } = await world.alice.call(routes.listModelsRoute, { query: { limit: 200 } });
    assert.equal(models.items.find(({ name }) => name === 'pool/scripted-large')?.state, 'retired');
    listed.splice(0, listed.length, 'scripted-large', 'scripted-small');
    assert.deepEqual((await discover('pool', { apply: 'true' })).restored, ['scripted-large']);
    listed.splice(0);
    assert.deepEqual((await discover('pool', { apply: 'true' })).retired, [], 'an empty list retires nothing');
    listed.push('scripted-large', 'scripted-small');
  });

  test('what is referred to is neither deleted, disabled nor retired without force, and every reference is named', async () => {
    await remote.commit('shop.git', { 'beeuni.yaml': MANIFEST, 'agents/build.md': AGENT });
    const spec = { repository: { url: remote.urlOf('shop.git') }, defaults: { model: 'acme/scripted-small' } };
    const { metadata } = await apply(world.client, PROJECTS, { metadata: at('shop'), spec }, MANAGER);
    const { body: fact } = await world.operator.call(syncProjectRoute, {
      params: at('shop'),
      body: {
        uid: metadata.uid ?? '',
        generation: 1,
        syncToken: null,
        repository: {
          url: remote.urlOf('shop.git'),
          defaultBranch: null,
          credentialsSecretName: null,
          forcePush: 'Forbidden',
          pollIntervalSeconds: 0,
        },
        manifestPath: 'beeuni.yaml',
        features: {},
        defaults: { agent: null, model: 'acme/scripted-small' },
        allowedModels: null,
        secrets: [],
      },
    });
    assert.deepEqual([fact.manifest.reason, fact.models.reason], ['Valid', 'AllKnown'], JSON.stringify(fact));
    const { body: shown } = await world.alice.call(getManifestRoute, { params: at('shop') });
    assert.equal(shown.manifest?.hash, fact.manifest.hash);
    assert.deepEqual(shown.manifest?.errors, []);
    await world.alice.call(createSessionRoute, {
      params: { namespace: world.namespace },
      body: { name: 'talk', spec: { projectRef: { name: 'shop' }, model: 'acme/scripted-large' } },
    });
    await world.alice.call(putSupervisorRoute, { body: { title_model: 'acme/scripted-small' } });
    await put('race', { fallback: ['acme/scripted-large'] });
    const refusalOf = async (work: Promise<unknown>): Promise<readonly string[]> => {
      const error = await work.then(
        () => undefined,
        (failure: unknown) => failure,
      );
      assert.ok(error instanceof BeeuniError && error.code === 'provider_referenced', String(error));
      return (error.details as { references: string[] }).references;
    };
    const remove = (force: 'true' | 'false') =>
      world.alice.call(routes.deleteProviderRoute, { params: { id: 'acme' }, query: { force } });
    const references = await until('the session is seen', async () => {
      const found = await refusalOf(remove('false'));
      return found.some((line) => line.startsWith('session ')) && found;
    });
    const places = [
      /title/,
      /project .*shop: spec\.defaults\.model/,
      /agents\/build/,
      /session .*\/talk: spec\.model/,
      /provider race: fallback/,
    ];
    for (const place of places)
      assert.ok(
        references.some((line) => place.test(line)),
        `${place}: ${references.join(' | ')}`,
      );
    assert.equal((await refusalOf(put('acme', { enabled: false }))).length, references.length);
    listed.splice(0, listed.length, 'scripted-small');
    assert.ok(
      (await discover('acme')).references.some((line) => /build/.test(line)),
      'a proposal names who would be hit',
    );
    await refusalOf(discover('acme', { apply: 'true' }));
    listed.push('scripted-large');
  });

  test('with force the project says ModelsValid=False within 10 s, and heals when the provider is back', async (t) => {
    const frames = await world.operator.ndjson(factsRoute, {});
    const reasons: { reason: string; atMs: number }[] = [];
    const follow = (async () => {
      for await (const frame of frames) {
        if (frame.type !== 'fact' || frame.fact.kind !== 'project') continue;
        reasons.push({ reason: frame.fact.models.reason, atMs: performance.now() });
      }
    })();
    await until('the snapshot is there', () => reasons.length > 0);
    const reached = async (reason: string, sinceMs: number): Promise<void> => {
      const seen = await until(`the fact says ${reason}`, () =>
        reasons.find((one) => one.reason === reason && one.atMs > sinceMs),
      );
      t.diagnostic(`${reason} after ${Math.round(seen.atMs - sinceMs)} ms`);
      assert.ok(seen.atMs - sinceMs < CONDITION_WITHIN_MS);
    };
    let startedMs = performance.now();
    await put('acme', { enabled: false }, true);
    await reached('ProviderDisabled', startedMs);
    startedMs = performance.now();
    await put('acme', {}, true);
    await reached('AllKnown', startedMs);
    startedMs = performance.now();
    await world.alice.call(routes.deleteProviderRoute, { params: { id: 'acme' }, query: { force: 'true' } });
    await reached('UnknownModel', startedMs);
    await frames.return(undefined);
    await follow;
  });

  test('syncProjectNow writes a new token each time', async () => {
    const token = async () =>
      (await world.alice.call(syncNowRoute, { params: at('shop'), body: {} })).body.spec['syncToken'];
    assert.notEqual(await token(), await token());
  });

  test('metrics tell how many models may be used and when a provider last answered', async () => {
    const url = await world.process.url('metrics');
    const page = await until('the registry was counted', async () => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return /beeuni_registry_models\{provider="pool"\} 2/.test(text) && text;
    });
    assert.match(page, /beeuni_registry_sync_total\{provider="pool",result="ok"\} [1-9]/);
    assert.match(page, /beeuni_registry_last_success_timestamp_seconds\{provider="pool"\} \d{10}/);
    assert.match(page, /beeuni_model_validation_total\{result="valid",reason="none"\} [1-9]/);
    assert.match(page, /beeuni_http_in_flight\{listener="public"\} 0/);
  });

  test('FF11 the canary key is in no answer, no log, no audit row and no row of the database', async () => {
    const { body: list } = await world.alice.call(routes.listProvidersRoute, { query: { limit: 200 } });
    assert.doesNotMatch(JSON.stringify(list), new RegExp(CANARY));
    assert.doesNotMatch(world.process.lines.join('\n'), new RegExp(CANARY));
    const tables = await world.database.pool.query<{ name: string }>({
      text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public' and c.relkind = 'r'`,
      values: [],
    });
    for (const { name } of tables) {
      const rows = await world.database.pool.query({
        text: `select 1 from "${name}" t where t::text like $1 or encode(convert_to(t::text, 'UTF8'), 'escape') like $1`,
        values: [`%${CANARY}%`],
      });
      assert.equal(rows.length, 0, name);
      const hex = await world.database.pool.query({
        text: `select 1 from "${name}" t where t::text like $1`,
        values: [`%${Buffer.from(CANARY).toString('hex')}%`],
      });
      assert.equal(hex.length, 0, `${name} as bytes`);
    }
  });
});
