// A provider key from the registry through real calls, and then looked for in everything that is kept or shown: tables,
// logs, metrics, answers, usage files. Also how soon a key and a credential that are taken away stop, in the middle of load.
// Source: faults FF11, G30, G31, 20-control-plane §1, §4.
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { UnauthenticatedError } from '#base/errors.ts';
import { type Listening, listen } from '#base/http/listen.ts';
import { createHttpServer } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import { createMetrics } from '#base/metrics.ts';
import type { Caller } from '#controlplane/app/caller.ts';
import { makeReadProviderKeys, sealProviderKey } from '#controlplane/app/provider-keys.ts';
import { makeRegistryReader } from '#controlplane/app/registry.ts';
import { makeFindWithdrawn, makeRunningCalls } from '#controlplane/app/running-calls.ts';
import { makeCredentials, newSessionCredential } from '#controlplane/daemons/credentials.ts';
import { makeKeyPools } from '#controlplane/gateway/key-pool.ts';
import { makeUpstreams, type Upstreams } from '#controlplane/gateway/upstream.ts';
import { mountGateway } from '#controlplane/http/gateway.ts';
import { makeProviderStore } from '#controlplane/store/provider-store.ts';
import { makeSeal, parseSealKeys } from '#controlplane/store/seal.ts';
import {
  deleteSession,
  findCredential,
  findRevokedHolders,
  insertCredential,
  markClosed,
  revokeCredentials,
} from '#controlplane/store/sessions.ts';
import { firstRow } from '#controlplane/store/statement.ts';
import { wireGateway, wireMetering } from '#controlplane/wiring/gateway.ts';
import { METRICS } from '#schema/metrics.ts';
import { DEFAULT_PLATFORM_FLAGS } from '#schema/rules/effective-flags.ts';
import { providerInput } from '#schema/settings/providers.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { aProject } from '#test/support/session-fixtures.ts';
import { until } from '#test/support/until.ts';

const CANARY = `sk-canary-${randomUUID()}`;
const OTHER = `sk-other-${randomUUID()}`;
/** How long anything that was taken away may go on. Units: milliseconds. */
const REVOKED_MS = 5_000;

let database: TestDatabase;
let folder: string;
let provider: ScriptedProvider;
let upstreams: Upstreams;
let listening: Listening;
let credential: string;
let stopBackground: () => Promise<void>;
const logs: string[] = [];
const answers: string[] = [];
const { instruments, page } = createMetrics(METRICS);
const { seal, unseal } = makeSeal(parseSealKeys(randomBytes(32).toString('hex')), randomBytes);

const saveProvider = async (keys: readonly string[]): Promise<void> => {
  const store = makeProviderStore(database.pool);
  const {
    id,
    api_key: _key,
    credential: _none,
    ...definition
  } = providerInput.parse({
    id: 'demo',
    kind: 'openai-compatible',
    base_url: provider.url,
    models: [{ id: 'scripted-large', price_input_micro_usd: 1_000_000 }],
  });
  const at = new Date().toISOString();
  await store.remove(id, undefined);
  const sealed = keys.map((key, index) => ({
    id: `k${index}`,
    sealed: sealProviderKey(seal, id)(key),
    lastFour: null,
    addedAt: at,
  }));
  await store.create(id, { definition, keys: sealed }, at);
};

/** A session with its first claim; gives back its credential. */
const claim = async (uid: string): Promise<string> => {
  const { text, stored } = newSessionCredential(randomBytes);
  await database.pool.query({
    text: `insert into sessions (uid, namespace, name, project_uid, generation, pod_uid) values ($1, 'n', $1, 'p', 1, 'pod')`,
    values: [uid],
  });
  await database.pool.query(insertCredential(stored, { sessionUid: uid, generation: 1, podUid: 'pod' }));
  return text;
};

before(async () => {
  database = await freshDatabase();
  folder = await mkdtemp(join(tmpdir(), 'beeuni-canary-'));
  provider = await startScriptedProvider({ keys: [CANARY, OTHER] });
  upstreams = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 64 });
  await saveProvider([CANARY]);
  credential = await claim('s');
  const clock = systemClock;
  const log = createLogger({ level: 'debug', write: (line) => logs.push(line) });
  const metering = wireMetering({ clock, log, database: database.pool, usageFile: join(folder, 'usage.jsonl') });
  await metering.background.start();
  const project = aProject({ limits: { dailyBudgetMicroUSD: 1_000_000_000 } });
  const registry = makeRegistryReader({ store: makeProviderStore(database.pool), clock });
  const readKeys = makeReadProviderKeys({
    unseal,
    readSecret: async () => {
      throw new Error('no provider here has a Secret');
    },
    namespace: 'n',
    clock,
  });
  const { handlers, background, refresh } = wireGateway({
    clock,
    log,
    instruments,
    metering,
    flags: DEFAULT_PLATFORM_FLAGS,
    findProject: () => project,
    findSession: () => undefined,
    readRegistry: registry.cached,
    readKeys,
    keyPools: makeKeyPools(clock),
    running: makeRunningCalls(
      (holders) => database.pool.query(findRevokedHolders(holders)),
      makeFindWithdrawn({ readRegistry: registry.cached, readKeys }),
    ),
    resolveRole: async () => undefined,
    upstreams,
    onBudgetReached: () => undefined,
    maxRequestBytes: 1_000_000,
    projectSeries: 10,
    calls: { perSecond: 10_000, burst: 10_000 },
  });
  await background.start();
  page.onScrape(refresh);
  stopBackground = async () => {
    await background.stop();
    await metering.background.stop();
  };
  const credentials = makeCredentials({
    findCredential: (prefix) => firstRow(database.pool.query, findCredential(prefix)),
    clock,
  });
  const server = createHttpServer({ listener: 'sandbox', log, clock });
  mountGateway(server, handlers, {
    authenticate: async (call): Promise<Caller> => {
      const found = await credentials.find((call.header('authorization') ?? '').replace(/^Bearer /, ''));
      if (found === undefined) throw new UnauthenticatedError('the session credential is not valid, or no longer');
      return { kind: 'sandbox', ...found };
    },
    authorize: async () => undefined,
  });
  listening = await listen(server, { port: 0, host: '127.0.0.1' });
});
after(async () => {
  await listening.stop(0);
  await stopBackground();
  await upstreams.close();
  await provider.close();
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

const call = (content: string, stream: boolean, key = credential): Promise<Response> =>
  fetch(`${listening.url}/gateway/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'demo/scripted-large', stream, messages: [{ role: 'user', content }] }),
  });
const ask = async (content: string, stream = false): Promise<number> => {
  const answer = await call(content, stream);
  answers.push((await answer.text()) + JSON.stringify([...answer.headers]));
  return answer.status;
};

/** Everything that the database holds, as text; bytes as hex. */
const dump = async (): Promise<string> => {
  const tables = await database.pool.query<{ name: string }>({
    text: `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
    values: [],
  });
  const parts: string[] = [];
  for (const { name } of tables) {
    const rows = await database.pool.query<{ row: string }>({
      text: `select t::text as row from ${name} t`,
      values: [],
    });
    parts.push(...rows.map(({ row }) => row));
  }
  return parts.join('\n');
};

test('FF11 G30 a provider key is in no table, log line, metric, answer or file, after good and bad calls', async () => {
  assert.equal(await ask('@@say x'), 200);
  for (const script of [
    '@@error 9 400 a',
    '@@error 9 401 b',
    '@@error 9 500 c',
    '@@error 9 429 d',
    '@@drop 9',
    '@@truncate',
  ]) {
    await ask(script, true);
  }
  assert.ok(provider.requests.some(({ headers }) => headers['authorization'] === `Bearer ${CANARY}`));
  await until('the rows are stored', async () => (await dump()).includes('demo/scripted-large'));
  const files = await Promise.all(
    (await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8').catch(() => '')),
  );
  const tables = await dump();
  const places = {
    tables,
    logs: logs.join('\n'),
    metrics: await page.render(),
    answers: answers.join('\n'),
    files: files.join('\n'),
  };
  assert.ok(places.logs.length > 0 && places.metrics.includes('beeuni_llm_requests_total{provider="demo"'));
  const hex = Buffer.from(CANARY).toString('hex');
  const base64 = Buffer.from(CANARY).toString('base64').slice(0, 40);
  for (const [place, text] of Object.entries(places)) {
    for (const form of [CANARY, hex, base64]) assert.equal(text.includes(form), false, place);
    // The session's own credential is kept as a hash, and shown to nobody either.
    assert.equal(text.includes(credential.slice(-43)), false, place);
  }
});

test('10-kubernetes §10 what is left of budgets is shown over all, and by project where the installation wants it', async () => {
  const { namespace, name } = aProject().metadata;
  const series = (await page.render()).split('\n').filter((line) => line.startsWith('beeuni_budget_remaining_ratio{'));
  const rests = series.map((line) => /^\S+\{namespace="(.*)",project="(.*)"\} (.*)$/.exec(line)?.slice(1));
  assert.deepEqual(
    rests.map((rest) => rest?.slice(0, 2)),
    [
      ['', ''],
      [namespace, name],
    ],
  );
  const [all, own] = rests.map((rest) => Number(rest?.[2]));
  assert.ok(all === own && own !== undefined && own < 1 && own > 0.99, series.join('\n'));
});

test('G31 a provider key that is taken away stops within 5 s, in the middle of load', async () => {
  let isRunning = true;
  const load = (async () => {
    while (isRunning) await ask('@@say load');
  })();
  const stream = await call('@@stream 2000 100', true, await claim('with-the-old-key'));
  assert.equal(stream.status, 200);
  await saveProvider([OTHER]);
  const changedAt = performance.now();
  const end = stream.text();
  await until(
    'calls carry the new key',
    () => provider.requests.at(-1)?.headers['authorization'] === `Bearer ${OTHER}`,
  );
  assert.ok(performance.now() - changedAt < REVOKED_MS);
  assert.match(await end, /"code":"provider_(?:auth_failed|disabled)"\}\}\n\n$/);
  assert.ok(performance.now() - changedAt < REVOKED_MS, 'a stream with the old key ends as well');
  const mark = provider.requests.length;
  await until('more calls were made', () => provider.requests.length > mark + 5);
  assert.ok(provider.requests.slice(mark).every(({ headers }) => headers['authorization'] === `Bearer ${OTHER}`));
  isRunning = false;
  await load;
});

test('FC12 G31 streams end with the reason within 5 s of losing their credential, in the middle of load, and others go on', async () => {
  let isRunning = true;
  const load = (async () => {
    while (isRunning) assert.equal(await ask('@@say load'), 200);
  })();
  const sessions = ['claimed-anew', 'pod-gone', 'closed', 'removed', 'untouched'];
  const long = '@@stream 2000 100';
  const streams = await Promise.all(
    sessions.map(async (uid) => {
      const answer = await call(long, true, await claim(uid));
      assert.equal(answer.status, 200);
      return answer;
    }),
  );
  const { query } = database.pool;
  await query({ text: `update sessions set generation = 2, pod_uid = 'pod-2' where uid = 'claimed-anew'`, values: [] });
  await query(revokeCredentials('pod-gone', 'pod'));
  await query(markClosed('closed'));
  await query(deleteSession('removed'));
  const revokedAt = performance.now();
  const ends = await Promise.all(streams.slice(0, 4).map((answer) => answer.text()));
  assert.ok(performance.now() - revokedAt < REVOKED_MS);
  const codes = ends.map((text) => /\n\ndata: (\{"error":.*\})\n\n$/.exec(text)?.[1] ?? text.slice(-200));
  assert.deepEqual(
    codes.map((json) => (JSON.parse(json) as { error: { code: string } }).error.code),
    ['superseded', 'unauthenticated', 'unauthenticated', 'unauthenticated'],
  );
  const untouched = streams[4]?.body?.getReader();
  for (let chunks = 0; chunks < 3; chunks += 1) assert.equal((await untouched?.read())?.done, false);
  await untouched?.cancel();
  isRunning = false;
  await load;
});

test('FC12 G31 a session credential that is revoked stops within 5 s, in the middle of load', async () => {
  assert.equal(await ask('@@say before'), 200);
  await database.pool.query({ text: `delete from credentials where session_uid = 's'`, values: [] });
  const revokedAt = performance.now();
  await until('the credential is refused', async () => (await ask('@@say still')) === 401, { deadlineMs: 10_000 });
  assert.ok(performance.now() - revokedAt < REVOKED_MS + 1_000);
});
