// Titles of sessions on a real Postgres: once, from the first prompt, whoever dies between, and never in the prompt's way.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import { whyUnusable } from '#controlplane/app/role-models.ts';
import { makeTitles, type Titles, type TitlesPorts } from '#controlplane/app/titles.ts';
import { makeKeyPools } from '#controlplane/gateway/key-pool.ts';
import type { UsageRow } from '#controlplane/gateway/ports.ts';
import { makeRoleCalls } from '#controlplane/gateway/role-calls.ts';
import { makeUpstreams, type Upstreams } from '#controlplane/gateway/upstream.ts';
import { makeTitleStore, readTitles } from '#controlplane/store/titles.ts';
import { resolveRole } from '#schema/rules/resolve-role.ts';
import { NO_ROLES } from '#schema/settings/roles.ts';
import { type ManualClock, manualClock } from '#test/support/manual-clock.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { aRegisteredProvider, SETTINGS_REGISTRY } from '#test/support/settings-api.ts';
import { aPrompt, aSessionKey, storedSessions } from '#test/support/stored-sessions.ts';
import { until } from '#test/support/until.ts';

const CANARY = 'sk-canary-title-key-1234567890';
let database: TestDatabase;
let parts: ReturnType<typeof storedSessions>;
let clock: ManualClock;
before(async () => {
  database = await freshDatabase({ poolSize: 12 });
  parts = storedSessions(database.pool);
});
beforeEach(async () => {
  clock = manualClock();
  await database.pool.query({ text: 'delete from session_titles', values: [] });
});

const log = createLogger({ level: 'error', write: () => undefined });
const off = { model: null, step: null, reason: 'off: nothing is assigned', passed: [] } as const;
const chosen = { model: 'acme/small', step: 'slot', reason: 'it is assigned to the role', passed: [] } as const;
const asked: string[] = [];
const maker = (changes: Partial<TitlesPorts> = {}): Titles =>
  makeTitles({
    store: makeTitleStore(database.pool),
    chooseModel: async () => chosen,
    ask: async (sessionUid) => {
      asked.push(sessionUid);
      return { text: `Title of ${sessionUid}` };
    },
    clock,
    random: () => 0,
    log,
    ...changes,
  });
const admit = (uid: string, id: string, changes = {}) => parts.inbox.admit(aSessionKey(uid), aPrompt(uid, id, changes));
/** Ports of calls that no budget limits. */
const UNLIMITED = {
  keyPools: makeKeyPools(systemClock),
  observe: { ended: () => undefined, rotated: () => undefined },
  findLimits: () => ({ budgets: [], runs: undefined }),
  budgets: { take: () => ({ settle: () => undefined }) },
};
const titleOf = async (uid: string): Promise<string | undefined> =>
  (await database.pool.query(readTitles([uid])))[0]?.title;
const rowOf = async (uid: string) =>
  (
    await parts.rows<{ state: string; reason: string | null; attempts: number }>(
      'select state, reason, attempts from session_titles where session_uid = $1',
      uid,
    )
  )[0];
/** Rows become due by the database's clock, so tests look from a little later. */
const later = (ms = 60_000): Promise<void> => clock.advance(Date.now() - clock.nowMs() + ms);

test('B2 a session gets one title from its first prompt, and later prompts change nothing', async () => {
  const questions: string[] = [];
  const titles = maker({
    ask: async (_uid, { user }) => {
      questions.push(user);
      return { text: '"Name the fruits"' };
    },
  });
  await admit('fruit', 'm1', { parts: [{ type: 'text', text: 'list apples' }] });
  await admit('fruit', 'm2', { parts: [{ type: 'text', text: 'list pears' }] });
  await later();
  await titles.lookAtDue();
  await admit('fruit', 'm3');
  await titles.lookAtDue();
  assert.equal(await titleOf('fruit'), 'Name the fruits');
  assert.equal(questions.length, 1);
  assert.match(questions[0] ?? '', /list apples/);
});

test('of many replicas that look at once one asks, and every session has its title', async () => {
  asked.length = 0;
  const uids = Array.from({ length: 12 }, (_, n) => `many-${n}`);
  await Promise.all(uids.map((uid) => admit(uid, 'm1')));
  await later();
  await Promise.all([maker(), maker(), maker()].map((titles) => titles.lookAtDue()));
  assert.deepEqual([...asked].sort(), [...uids].sort());
  assert.equal((await database.pool.query(readTitles(uids))).length, uids.length);
});

test('a replica that dies in its call leaves the title to the next one, once the lease is over', async () => {
  await admit('dies', 'm1');
  await later();
  const hanging = Promise.withResolvers<never>();
  void maker({ ask: () => hanging.promise }).lookAtDue();
  await until('it is taken', async () => (await rowOf('dies'))?.attempts === 1);
  await maker().lookAtDue();
  assert.equal(await titleOf('dies'), undefined, 'the lease still holds');
  await later(160_000);
  await maker().lookAtDue();
  assert.equal(await titleOf('dies'), 'Title of dies');
});

test('an answer that comes after another replica has made the title does not replace it', async () => {
  await admit('late', 'm1');
  await later();
  const answer = Promise.withResolvers<{ text: string }>();
  const first = maker({ ask: () => answer.promise }).lookAtDue();
  await until('it is taken', async () => (await rowOf('late'))?.attempts === 1);
  await later(160_000);
  await maker().lookAtDue();
  answer.resolve({ text: 'Too late' });
  await first;
  assert.equal(await titleOf('late'), 'Title of late');
});

test('a title is off when no model resolves, with the reason, and is tried again with the next prompt', async () => {
  await admit('off', 'm1');
  await later();
  await maker({ chooseModel: async () => off }).lookAtDue();
  assert.deepEqual(await rowOf('off'), { state: 'off', reason: 'off: nothing is assigned', attempts: 1 });
  await maker().lookAtDue();
  assert.equal(await titleOf('off'), undefined);
  await admit('off', 'm2');
  await later();
  await maker().lookAtDue();
  assert.equal(await titleOf('off'), 'Title of off');
});

test('a model that fails is asked again with growing pauses, four times at most', async () => {
  await admit('fails', 'm1');
  let calls = 0;
  const titles = maker({
    ask: async () => {
      calls += 1;
      throw new UnavailableError('provider_failed', 'the provider answered HTTP 500');
    },
  });
  await later();
  await titles.lookAtDue();
  await titles.lookAtDue();
  assert.equal(calls, 1, 'it waits');
  for (let n = 2; n <= 6; n += 1) {
    await later(n * 400_000);
    await titles.lookAtDue();
  }
  assert.equal(calls, 4);
  assert.deepEqual(await rowOf('fails'), { state: 'off', reason: 'the provider answered HTTP 500', attempts: 4 });
});

test('a prompt without text waits for one that has some', async () => {
  await admit('shell', 'm1', { parts: [{ type: 'shell', command: 'ls' }] });
  await later();
  await maker().lookAtDue();
  assert.equal((await rowOf('shell'))?.reason, 'no prompt has text yet');
  await admit('shell', 'm2');
  await later();
  await maker().lookAtDue();
  assert.equal(await titleOf('shell'), 'Title of shell');
});

test('a withdrawn first prompt names nothing', async () => {
  await admit('taken-back', 'm1', { parts: [{ type: 'text', text: 'secret plan' }] });
  await parts.inbox.withdraw('taken-back', 'prm_taken-back_m1');
  await admit('taken-back', 'm2', { parts: [{ type: 'text', text: 'open plan' }] });
  await later();
  let question = '';
  const ask: TitlesPorts['ask'] = async (_uid, { user }) => {
    question = user;
    return { text: 'A plan' };
  };
  await maker({ ask }).lookAtDue();
  assert.match(question, /open plan/);
  assert.doesNotMatch(question, /secret/);
});

test('a stop cuts the call and leaves the title due at once; a prompt of a spec is titled too', async () => {
  await parts.inbox.admitSeen([aSessionKey('stopped')], [aPrompt('stopped', 'spec:stopped')]);
  await later();
  const titles = maker({
    ask: (_uid, _question, signal) =>
      new Promise((_resolve, reject) => {
        if (signal.aborted) reject(new Error('cut'));
        signal.addEventListener('abort', () => reject(new Error('cut')));
      }),
  });
  titles.poke();
  await until('it is taken', async () => (await rowOf('stopped'))?.attempts === 1);
  await titles.stop();
  await maker().lookAtDue();
  assert.equal(await titleOf('stopped'), 'Title of stopped');
});

test('pokes that come while it looks, however many, come to one more look after a pause', async () => {
  let looks = 0;
  const store = makeTitleStore(database.pool);
  const titles = maker({
    store: {
      ...store,
      takeDue: async (...given) => {
        looks += 1;
        return store.takeDue(...given);
      },
    },
  });
  for (let n = 0; n < 1_000; n += 1) titles.poke();
  await until('it looked', () => looks === 1);
  for (let n = 0; n < 1_000; n += 1) titles.poke();
  await until('it pauses', () => clock.pending() > 0);
  assert.equal(looks, 1);
  await clock.advance(500);
  await until('it looked once more', () => looks === 2);
  await titles.stop();
  assert.equal(looks, 2);
});

test('a session that is removed takes its title with it', async () => {
  await admit('removed', 'm1');
  await parts.ends.close('removed', new Date().toISOString());
  await parts.ends.remove('removed', new Date().toISOString());
  assert.equal(await rowOf('removed'), undefined);
});

let provider: ScriptedProvider | undefined;
let upstreams: Upstreams | undefined;
after(async () => {
  await upstreams?.close();
  await provider?.close();
});

test('B4 the title role is asked over its provider with its key, and the call is metered without a turn', async () => {
  provider = await startScriptedProvider({ key: CANARY, models: ['scripted-large'] });
  upstreams = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 4 });
  const base = aRegisteredProvider('demo', ['scripted-large']);
  const priced = base.models.map((model) => ({ ...model, price_input_micro_usd: 1e6, price_output_micro_usd: 1e6 }));
  const registry = { generation: 1, providers: [{ ...base, base_url: provider.url, models: priced }] };
  const rows: UsageRow[] = [];
  const calls = makeRoleCalls({
    readRegistry: async () => registry,
    readKeys: async () => [{ id: 'default', secret: CANARY }],
    upstreams,
    usage: { record: (row) => rows.push(row), isFull: () => false },
    ...UNLIMITED,
    clock: systemClock,
    newId: randomUUID,
  });
  const payer = { namespace: 'team', projectUid: 'project-1', sessionUid: 'real' };
  await admit('real', 'm1', { parts: [{ type: 'text', text: 'say hello' }] });
  await later();
  await maker({
    chooseModel: async () =>
      resolveRole(
        'title',
        { slots: { ...NO_ROLES, title: 'demo/scripted-large' }, run: null, environment: null },
        whyUnusable(registry),
      ),
    ask: (_uid, question, signal) => calls.ask(payer, question, signal),
  }).lookAtDue();
  assert.notEqual(await titleOf('real'), undefined);
  assert.deepEqual(
    rows.map(({ model, turnId, status, sessionUid, generation }) => [model, turnId, status, sessionUid, generation]),
    [['demo/scripted-large', null, 200, 'real', 0]],
  );
  assert.ok((rows[0]?.costMicroUsd ?? 0) > 0);
  const asked = provider.requests.at(-1)?.body ?? {};
  assert.deepEqual(
    [asked['max_tokens'], asked['max_completion_tokens'], asked['tools']],
    [1_024, undefined, undefined],
  );

  registry.providers[0]?.models.forEach((model, at, all) => {
    all[at] = { ...model, reasoning: true };
  });
  await calls.ask(
    payer,
    { model: 'demo/scripted-large', system: 's', user: 'u', maxOutputTokens: 9 },
    AbortSignal.timeout(9_000),
  );
  assert.equal(provider.requests.at(-1)?.body['max_completion_tokens'], 9);
  rows.pop();

  const wrong = makeRoleCalls({
    readRegistry: async () => registry,
    readKeys: async () => [{ id: 'default', secret: 'sk-wrong-key-0987654321' }],
    upstreams,
    usage: { record: (row) => rows.push(row), isFull: () => false },
    ...UNLIMITED,
    clock: systemClock,
    newId: randomUUID,
  });
  await admit('refused', 'm1');
  await later();
  await maker({
    ask: (_uid, question, signal) => wrong.ask(payer, { ...question, model: 'demo/scripted-large' }, signal),
  }).lookAtDue();
  const { reason = '' } = (await rowOf('refused')) ?? {};
  assert.match(reason ?? '', /refused the key/);
  assert.doesNotMatch(reason ?? '', /sk-wrong/);
  assert.equal(rows[1]?.status, 502);
});

test('A217 B4 a title is asked with the key choice of the gateway: a pool that is asked to slow down gives its next key', async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const key = request.headers.authorization ?? '';
    seen.push(key);
    request.resume();
    const slow = key.endsWith('slow');
    response.writeHead(slow ? 429 : 200, { 'content-type': 'application/json', 'retry-after': '20' });
    response.end(slow ? '{}' : JSON.stringify({ choices: [{ message: { content: 'Named' } }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const pools = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 4 });
  const keyPools = makeKeyPools(clock);
  const outcomes: string[] = [];
  const provider = { ...aRegisteredProvider('demo', ['m']), base_url: `http://127.0.0.1:${port}/v1` };
  const calls = makeRoleCalls({
    readRegistry: async () => ({ generation: 1, providers: [provider] }),
    readKeys: async () => ['sk-slow', 'sk-quick'].map((secret) => ({ id: secret, secret })),
    upstreams: pools,
    usage: { record: () => undefined, isFull: () => false },
    ...UNLIMITED,
    keyPools,
    observe: { ended: ({ outcome }) => outcomes.push(outcome), rotated: () => outcomes.push('rotated') },
    clock: systemClock,
    newId: randomUUID,
  });
  const ask = (sessionUid: string) =>
    calls.ask(
      { namespace: 'team', projectUid: 'p', sessionUid },
      { model: 'demo/m', system: 's', user: 'u', maxOutputTokens: 8 },
      AbortSignal.timeout(60_000),
    );
  try {
    // Whatever key a session begins with, it is answered, and the slow one is asked once.
    for (const session of ['a', 'b', 'c', 'd']) assert.equal((await ask(session)).text, 'Named');
    assert.deepEqual(
      seen.filter((key) => key.endsWith('slow')),
      ['Bearer sk-slow'],
    );
    assert.deepEqual(
      outcomes.toSorted(),
      ['ok', 'ok', 'ok', 'ok', 'rotated'],
      'each call is counted, and the second key',
    );
    assert.equal(keyPools.resting().get(`demo ${provider.generation}`), 1, 'the gateway knows of it too');
    await clock.advance(20_000);
    await ask('a');
    await ask('b');
    assert.equal(seen.filter((key) => key.endsWith('slow')).length, 2, 'a key that has rested is tried again');
  } finally {
    server.closeAllConnections();
    server.close();
    await pools.close();
  }
});

test('20-control-plane §10 a title is paid out of the session’s budgets, and one that is used up asks no provider', async () => {
  const idle = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 1 });
  const settled: number[] = [];
  const rows: UsageRow[] = [];
  let isUsedUp = false;
  const calls = makeRoleCalls({
    readRegistry: async () => ({
      generation: 1,
      providers: [{ ...aRegisteredProvider('demo', ['m']), base_url: 'http://127.0.0.1:1/v1' }],
    }),
    readKeys: async () => [],
    upstreams: idle,
    keyPools: makeKeyPools(systemClock),
    observe: UNLIMITED.observe,
    usage: { record: (row) => rows.push(row), isFull: () => false },
    findLimits: ({ sessionUid }) => ({
      budgets: [{ scope: 'session', uid: sessionUid, period: '', limitMicroUsd: 5 }],
      runs: { projectUid: 'p', day: '2026-11-30', limit: 0 },
    }),
    budgets: {
      take: ({ budgets, runs }) => {
        assert.deepEqual([budgets.length, runs], [1, undefined], 'a title is no run');
        return isUsedUp
          ? Promise.resolve({ reason: 'reached', scope: 'session', limit: undefined })
          : { settle: (cost) => settled.push(cost) };
      },
    },
    clock: systemClock,
    newId: randomUUID,
  });
  const ask = () =>
    calls.ask(
      { namespace: 'team', projectUid: 'p', sessionUid: 's' },
      { model: 'demo/m', system: 's', user: 'u', maxOutputTokens: 8 },
      AbortSignal.timeout(5_000),
    );
  try {
    await assert.rejects(ask(), { code: 'provider_failed' });
    assert.deepEqual([settled, rows.length], [[0], 1], 'what was set aside is given back');
    isUsedUp = true;
    await assert.rejects(ask(), { code: 'budget_reached' });
    assert.equal(rows.length, 1);
  } finally {
    await idle.close();
  }
});

test('B4 a provider that speaks Messages is asked in its own way, and what it answers is judged before it is used', async () => {
  let reply: Readonly<{ status: number; body: string }> = { status: 200, body: '{}' };
  const seen: { path: string; key: unknown; body: Record<string, unknown> }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
      seen.push({ path: request.url ?? '', key: request.headers['x-api-key'], body });
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const pools = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 4 });
  const base = aRegisteredProvider('messages', ['wise']);
  const registered = { ...base, kind: 'anthropic' as const, base_url: `http://127.0.0.1:${port}/v1` };
  const rows: UsageRow[] = [];
  const calls = makeRoleCalls({
    readRegistry: async () => ({ generation: 1, providers: [registered] }),
    readKeys: async () => [{ id: 'default', secret: CANARY }],
    upstreams: pools,
    usage: { record: (row) => rows.push(row), isFull: () => false },
    ...UNLIMITED,
    clock: systemClock,
    newId: randomUUID,
  });
  const payer = { namespace: 'team', projectUid: 'project-1', sessionUid: 's' };
  const question = { model: 'messages/wise', system: 'be short', user: 'hello', maxOutputTokens: 10 };
  const ask = () => calls.ask(payer, question, AbortSignal.timeout(5_000));
  try {
    reply = {
      status: 200,
      body: JSON.stringify({
        model: 'wise-1',
        content: [{ type: 'text', text: 'Hi' }],
        usage: { input_tokens: 7, output_tokens: 2 },
      }),
    };
    const answer = await ask();
    assert.deepEqual([answer.text, answer.promptTokens, answer.completionTokens], ['Hi', 7, 2]);
    assert.deepEqual([seen[0]?.path, seen[0]?.key, seen[0]?.body['system']], ['/v1/messages', CANARY, 'be short']);
    for (const [status, body, message] of [
      [401, '{}', /refused the key/],
      [500, CANARY, /answered HTTP 500/],
      [200, 'not json', /is not valid/],
      [200, '{"content":[{"type":"text"}]}', /is not valid/],
      [200, 'null', /is not valid/],
    ] as const) {
      reply = { status, body };
      await assert.rejects(ask(), (error: Error) => message.test(error.message) && !error.message.includes(CANARY));
    }
    assert.equal(rows.filter(({ status }) => status === 502).length, 5);
  } finally {
    server.closeAllConnections();
    server.close();
    await pools.close();
  }
});

test('B22 the embedding model is reached with its key, and its vector is counted; what is no vector is an error', async () => {
  let reply: unknown = { data: [{ embedding: Array.from({ length: 384 }, () => 0.5) }] };
  let status = 200;
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers.authorization}`);
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const pools = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 4 });
  const calls = makeRoleCalls({
    readRegistry: async () => ({
      generation: 1,
      providers: [{ ...aRegisteredProvider('vectors', ['embed']), base_url: `http://127.0.0.1:${port}/v1` }],
    }),
    readKeys: async () => [{ id: 'default', secret: CANARY }],
    upstreams: pools,
    usage: { record: () => assert.fail('a look is no call of a session'), isFull: () => false },
    ...UNLIMITED,
    clock: systemClock,
    newId: randomUUID,
  });
  const probe = (model = 'vectors/embed') => calls.probeEmbedding(model, AbortSignal.timeout(5_000));
  try {
    assert.equal(await probe(), 384);
    assert.deepEqual(seen, [`/v1/embeddings Bearer ${CANARY}`]);
    for (const wrong of [{ data: [] }, { data: [{ embedding: 'x' }] }, {}, null]) {
      reply = wrong;
      await assert.rejects(probe(), { code: 'provider_failed' });
    }
    status = 401;
    await assert.rejects(
      probe(),
      (error: Error) => /refused the key/.test(error.message) && !error.message.includes(CANARY),
    );
    await assert.rejects(probe('vectors/none'), /lists no model none/);
  } finally {
    server.closeAllConnections();
    server.close();
    await pools.close();
  }
});

test('B6 a project’s list of models counts for roles too, and a role beyond it is passed over', () => {
  const candidates = { slots: { ...NO_ROLES, title: 'acme/large' }, run: null, environment: 'env/main' };
  const choice = resolveRole('title', candidates, whyUnusable({ ...SETTINGS_REGISTRY, allowed: ['env/*'] }));
  assert.deepEqual([choice.model, choice.passed[0]?.why], ['env/main', 'the project does not allow acme/large']);
  const eyes = { slots: { ...NO_ROLES, vision: 'acme/large' }, run: 'acme/eyes', environment: null };
  const vision = resolveRole('vision', eyes, whyUnusable(SETTINGS_REGISTRY));
  assert.deepEqual([vision.model, vision.passed[0]?.why], ['acme/eyes', 'model acme/large takes no images']);
});
