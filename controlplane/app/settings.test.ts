// The settings that running parts read: how old they may be, and what they are while the database is away.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnavailableError } from '#base/errors.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { makeEmbeddingStatus } from './embedding-status.ts';
import type { StoredSettings } from './saved-settings.ts';
import { makeSettingsApp } from './settings.ts';
import { readSettingsEnvironment } from './settings-environment.ts';

const world = () => {
  const clock = manualClock();
  const calls = { revision: 0, read: 0 };
  const state = { isAway: false, stored: { revision: 1, values: new Map<string, unknown>() } as StoredSettings };
  const answer = async <T>(value: () => T): Promise<T> => {
    if (state.isAway) throw new UnavailableError('database_unavailable', 'the database could not be reached');
    return value();
  };
  const app = makeSettingsApp({
    store: {
      read: () => {
        calls.read += 1;
        return answer(() => state.stored);
      },
      revision: () => {
        calls.revision += 1;
        return answer(() => state.stored.revision);
      },
      change: () => assert.fail('nothing is changed here'),
    },
    environment: readSettingsEnvironment({}),
    readRegistry: () => assert.fail('no name is judged here'),
    embeddingStatus: makeEmbeddingStatus({ model: null, probe: async () => 1, clock }),
    environmentModel: null,
    clock,
  });
  const save = (role: string, revision: number): void => {
    state.stored = { revision, values: new Map([['eval.judge.model', role]]) };
  };
  return { clock, calls, state, app, save };
};

test('a role that another replica took away is gone within 2 s, and rows are read only when their revision moved', async () => {
  const { app, clock, calls, save } = world();
  save('acme/large', 2);
  assert.equal((await app.current()).roles.judge, 'acme/large');
  await clock.advance(1_999);
  await app.current();
  assert.deepEqual(calls, { revision: 0, read: 1 });
  await clock.advance(1);
  await app.current();
  assert.deepEqual(calls, { revision: 1, read: 1 });
  save('', 3);
  await clock.advance(2_000);
  assert.equal((await app.current()).roles.judge, '');
  assert.deepEqual(calls, { revision: 2, read: 2 });
});

test('many readers at once cost one look', async () => {
  const { app, calls } = world();
  await Promise.all(Array.from({ length: 50 }, () => app.current()));
  assert.equal(calls.read, 1);
});

test('while the database is away the last known settings serve for ten minutes, and then nothing is made up', async () => {
  const { app, clock, state, save } = world();
  save('acme/large', 2);
  await app.current();
  state.isAway = true;
  await clock.advance(599_000);
  assert.equal((await app.current()).roles.judge, 'acme/large');
  await clock.advance(2_000);
  await assert.rejects(app.current(), { code: 'database_unavailable' });
  state.isAway = false;
  assert.equal((await app.current()).roles.judge, 'acme/large');
});

test('a process that never reached the database has no settings to serve', async () => {
  const { app, state } = world();
  state.isAway = true;
  await assert.rejects(app.current(), { code: 'database_unavailable' });
});

test('B22 the embedding model is looked at once a minute for any number of readers, and its last error is told', async () => {
  const clock = manualClock();
  let looks = 0;
  let failure: Error | undefined;
  const status = makeEmbeddingStatus({
    model: 'acme/embed',
    probe: async () => {
      looks += 1;
      if (failure !== undefined) throw failure;
      return 1_024;
    },
    clock,
  });
  const [first] = await Promise.all(Array.from({ length: 20 }, () => status()));
  assert.deepEqual([first?.reachable, first?.vector_size, first?.last_error, looks], [true, 1_024, null, 1]);
  failure = new Error('the provider answered HTTP 500');
  await clock.advance(59_000);
  assert.equal((await status()).reachable, true);
  await clock.advance(1_000);
  const later = await status();
  assert.deepEqual([later.reachable, later.vector_size, later.last_error], [false, 1_024, failure.message]);
  assert.equal(looks, 2);
});

test('an embedding model that never answers holds a reader up for five seconds at most', async () => {
  const clock = manualClock();
  const status = makeEmbeddingStatus({
    model: 'acme/embed',
    probe: (_model, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('it took too long')))),
    clock,
  });
  const looking = status();
  await clock.advance(5_000);
  assert.deepEqual([(await looking).reachable, (await looking).last_error], [false, 'it took too long']);
});
