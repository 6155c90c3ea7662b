// Rotation of the encryption key over a real Postgres: every sealed column, at every point where the work can end.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { before, beforeEach, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { createLogger } from '#base/log.ts';
import { makeReadProviderKeys, providerKeyContext } from '#controlplane/app/provider-keys.ts';
import type { SealedKey } from '#controlplane/app/provider-ports.ts';
import { makeReseal, type SealedTexts } from '#controlplane/app/reseal.ts';
import { daemonCredentialContext } from '#controlplane/daemons/credentials.ts';
import { readColumns } from '#controlplane/store/catalogue.ts';
import { makeProviderStore } from '#controlplane/store/provider-store.ts';
import { makeSeal, parseSealKeys } from '#controlplane/store/seal.ts';
import { makeSealedTexts, SEALED_COLUMNS } from '#controlplane/store/sealed-texts.ts';
import { advanceGeneration, ensureSessions } from '#controlplane/store/sessions.ts';
import { providerInput } from '#schema/settings/providers.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { AT, aSessionKey } from '#test/support/stored-sessions.ts';

const OLD = '01'.repeat(32);
const NEW = '02'.repeat(32);
const KEYS = 4;
/** Keys of the pool, the copy of the first one, and the credential of one daemon. */
const TEXTS = KEYS + 2;
const CONTEXTS = {
  provider_keys: providerKeyContext,
  providers: providerKeyContext,
  sessions: daemonCredentialContext,
};
const lines: string[] = [];
const log = createLogger({ level: 'debug', write: (line) => lines.push(line) });
const sealing = (text: string) => ({ ...makeSeal(parseSealKeys(text), randomBytes), id: parseSealKeys(text)[0].id });

let database: TestDatabase;
before(async () => {
  database = await freshDatabase();
});
beforeEach(async () => {
  lines.length = 0;
  await database.pool.query({ text: 'delete from providers', values: [] });
  const { seal } = sealing(OLD);
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
  const keys = Array.from({ length: KEYS }, (_, n): SealedKey => {
    const sealed = seal(`sk-secret-${n}`, providerKeyContext('acme'));
    return { id: `key-${n}`, sealed, lastFour: null, addedAt: AT };
  });
  await makeProviderStore(database.pool).create('acme', { definition, keys }, AT);
  await database.pool.query(ensureSessions([aSessionKey('s1')]));
  const daemonCredential = seal('bd_daemon', daemonCredentialContext('s1'));
  const claim = { projectUid: 'project-1', podUid: 'p', harness: 'opencode', daemonCredential };
  await database.pool.query(advanceGeneration('s1', claim));
});

const rotate = (keyFile: string, change: (texts: SealedTexts) => SealedTexts = (texts) => texts) => {
  const { seal, unseal, id } = sealing(keyFile);
  return makeReseal({ texts: change(makeSealedTexts(database.pool, id, CONTEXTS)), seal, unseal, log })();
};
const opened = async (keyFile: string): Promise<readonly string[]> => {
  const { unseal } = sealing(keyFile);
  const { providers } = await makeProviderStore(database.pool).registry();
  const readSecret = async () => ({ kind: 'not-found', message: '' }) as const;
  const read = makeReadProviderKeys({ unseal, readSecret, namespace: 'x', clock: systemClock });
  const keys = await Promise.all(providers.map(async (provider) => read(provider)));
  const rows = await database.pool.query<{ api_key: Buffer; daemon_credential: Buffer }>({
    text: `select p.api_key, s.daemon_credential from providers p, sessions s where s.uid = 's1'`,
    values: [],
  });
  return [
    ...keys.flat().map(({ secret }) => secret),
    ...rows.map(({ api_key }) => unseal(api_key, providerKeyContext('acme'))),
    ...rows.map(({ daemon_credential }) => unseal(daemon_credential, daemonCredentialContext('s1'))),
  ];
};
const ALL = ['sk-secret-0', 'sk-secret-1', 'sk-secret-2', 'sk-secret-3', 'sk-secret-0', 'bd_daemon'];

test('after one pass everything opens with the new key alone, and a second pass finds nothing', async () => {
  assert.deepEqual(await rotate(`${NEW}\n${OLD}`), { resealed: TEXTS, unopened: 0 });
  assert.deepEqual(await opened(NEW), ALL);
  assert.deepEqual(await rotate(`${NEW}\n${OLD}`), { resealed: 0, unopened: 0 });
});

for (let done = 0; done <= TEXTS; done += 1) {
  test(`a pass that dies after ${done} texts leaves all of them readable, and the next one goes on`, async () => {
    let left = done;
    const dies = rotate(`${NEW}\n${OLD}`, (texts) => ({
      ...texts,
      replace: async (text, sealed) => {
        if (left === 0) throw new Error('killed');
        left -= 1;
        return texts.replace(text, sealed);
      },
    }));
    if (done === TEXTS) await dies;
    else await assert.rejects(dies, /killed/);
    assert.deepEqual(await opened(`${NEW}\n${OLD}`), ALL);
    assert.deepEqual(await rotate(`${NEW}\n${OLD}`), { resealed: TEXTS - done, unopened: 0 });
    assert.deepEqual(await opened(NEW), ALL);
  });
}

test('two replicas at once exchange every text once', async () => {
  const passes = await Promise.all([rotate(`${NEW}\n${OLD}`), rotate(`${NEW}\n${OLD}`)]);
  assert.equal(
    passes.reduce((sum, { resealed }) => sum + resealed, 0),
    TEXTS,
  );
  assert.deepEqual(await opened(NEW), ALL);
});

test('a key that an administrator changes meanwhile is not put back', async () => {
  const store = makeProviderStore(database.pool);
  const changed: SealedKey = {
    id: 'key-0',
    sealed: sealing(OLD).seal('sk-newer', providerKeyContext('acme')),
    lastFour: null,
    addedAt: AT,
  };
  let isFirst = true;
  await rotate(`${NEW}\n${OLD}`, (texts) => ({
    ...texts,
    replace: async (text, sealed) => {
      const before = await store.find('acme');
      if (isFirst && before !== undefined) {
        isFirst = false;
        await store.replace('acme', before.generation, { definition: before.definition, keys: [changed] }, AT);
      }
      return texts.replace(text, sealed);
    },
  }));
  assert.deepEqual(await opened(`${NEW}\n${OLD}`), ['sk-newer', 'sk-newer', 'bd_daemon']);
});

test('a text whose key is missing is counted, named without its content, and stays', async () => {
  assert.deepEqual(await rotate(NEW), { resealed: 0, unopened: TEXTS });
  assert.match(lines.join('\n'), /"place":"provider_keys","key":"acme\/key-0"/);
  assert.doesNotMatch(lines.join('\n'), /sk-secret|bd_daemon/);
  assert.deepEqual(await opened(OLD), ALL);
});

test('every column of bytes is sealed again, or is no sealed text', async () => {
  const columns = (await readColumns(database.pool.query))
    .filter(({ type }) => type === 'bytea')
    .map(({ table_name, name }) => `${table_name}.${name}`);
  const known = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`);
  /** Hashes, which open to nothing. */
  const others = ['credentials.hash'];
  assert.deepEqual(
    columns.filter((column) => !known.includes(column)),
    others,
  );
});
