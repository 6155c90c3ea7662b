// List and watch under harm: nothing is lost, nothing loops, and a dead watch is noticed.
// Time stands still unless a test moves it, so "no second list" is a fact and not a matter of luck.
import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { Informer, type InformerOptions } from '#kube/informer.ts';
import { OwnWrites } from '#kube/own-writes.ts';
import { type KubeObject, SERVICE_ACCOUNTS } from '#kube/resource-types.ts';
import { startFaultProxy } from '#test/support/fault-proxy.ts';
import { openTestClient, startTestApi, type TestApi } from '#test/support/kube.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { until } from '#test/support/until.ts';

const MANAGER = { manager: 'beeuni-test' };
let api: TestApi;

before(async () => {
  api = await startTestApi();
});
after(async () => api.stop());

type Value = Readonly<{ name: string; color: string }>;
const project = ({ metadata }: KubeObject): Value => ({ name: metadata.name, color: metadata.labels?.['color'] ?? '' });

/** An informer of the service accounts of a fresh namespace, behind a proxy, on a manual clock. */
const bench = async (t: TestContext, options: Partial<InformerOptions<Value>> = {}) => {
  const namespace = await api.namespace();
  const proxy = await startFaultProxy({ kubeconfigPath: api.kubeconfigPath });
  const clock = manualClock();
  const own = await openTestClient(proxy.kubeconfigPath, { clock, random: () => 0 });
  const { client, log, metrics } = own;
  const keys: string[] = [];
  const ownWrites = new OwnWrites({ clock });
  const informer = new Informer<Value>(
    { type: SERVICE_ACCOUNTS, selection: { namespace }, project, ...options },
    { client, clock, random: () => 0, log, metrics, ownWrites },
  );
  informer.subscribe((key) => keys.push(key));
  t.after(async () => {
    await informer.stop();
    await client.close();
    await proxy.stop();
  });
  const admin = api.admin.client;
  const uids = new Map<string, string>();
  const names = () => [...informer.cache.entries()].map(({ name }) => name).sort();
  const count = (verb: 'list' | 'watch') =>
    proxy.calls.filter((call) => call.verb === verb && call.resource === 'serviceaccounts').length;
  return {
    ...own,
    namespace,
    proxy,
    clock,
    informer,
    keys,
    ownWrites,
    names,
    count,
    create: async (name: string, color = '') => {
      const { metadata } = await admin.create(
        SERVICE_ACCOUNTS,
        { metadata: { namespace, name, labels: { color } } },
        MANAGER,
      );
      uids.set(name, metadata.uid ?? '');
      return metadata;
    },
    remove: async (name: string) => admin.delete(SERVICE_ACCOUNTS, { namespace, name }, { uid: uids.get(name) ?? '' }),
    start: async () => {
      informer.start();
      await until('the first list is complete', () => informer.hasSynced(), { describe: () => own.logged });
      await until('the watch is open, or harmed', () =>
        proxy.calls.some(
          ({ verb, serverStatus, acts }) => verb === 'watch' && (serverStatus === 200 || acts.length > 0),
        ),
      );
    },
    /** Moves time until the informer shows exactly these. */
    untilShown: async (wanted: readonly string[]) =>
      until(
        `the cache shows ${wanted.join(', ')}`,
        async () => {
          await clock.advance(500);
          return names().join() === [...wanted].sort().join();
        },
        {
          describe: () => ({
            shown: names(),
            calls: proxy.calls.map(({ verb, serverStatus, acts }) => [verb, serverStatus, acts]),
            logged: own.logged,
          }),
        },
      ),
  };
};

test('C12 the first list comes in pages, and list and watch give the same frozen values', async (t) => {
  const { informer, create, start, names, keys, namespace, count } = await bench(t, { pageSize: 2 });
  for (const name of ['a', 'b', 'c', 'd', 'e']) await create(name, 'red');
  await start();
  assert.deepEqual(names(), ['a', 'b', 'c', 'd', 'e']);
  assert.equal(count('list'), 3);
  await create('f', 'red');
  await until('f was seen', () => keys.includes(`${namespace}/f`));
  const [listed, watched] = [informer.cache.get(`${namespace}/a`), informer.cache.get(`${namespace}/f`)];
  assert.deepEqual({ ...listed, name: '' }, { ...watched, name: '' });
  assert.ok(Object.isFrozen(listed) && Object.isFrozen(watched));
});

test('C11 an informer that was started cannot be started again', async (t) => {
  const { informer, start } = await bench(t);
  await start();
  assert.throws(() => informer.start(), TypeError);
});

test('C9 a handler that throws stops neither the list nor the watch nor other handlers', async (t) => {
  const { informer, create, start, keys, logged, namespace } = await bench(t);
  const after: string[] = [];
  informer.subscribe(() => {
    throw new Error('handler is broken');
  });
  informer.subscribe((key) => after.push(key));
  await create('a');
  await start();
  await create('b');
  await until('b was seen', () => keys.includes(`${namespace}/b`));
  assert.deepEqual(after, [`${namespace}/a`, `${namespace}/b`]);
  assert.ok(logged.some((line) => line.includes('a handler of a watch threw')));
});

test('C10 an object that was re-created during a gap is a delete and an add', async (t) => {
  const { informer, create, remove, start, proxy, clock, namespace, untilShown, count } = await bench(t);
  await create('a');
  await start();
  const before = informer.cache.entry(`${namespace}/a`)?.uid ?? '';
  const refuse = proxy.add({ verb: 'watch' }, { kind: 'refuse-before' });
  proxy.cutWatches('reset');
  await until('the watch is refused', async () => {
    await clock.advance(500);
    return refuse.hits() > 0;
  });
  await remove('a');
  await create('a', 'blue');
  refuse.release();
  await until('the new one is seen', async () => {
    await clock.advance(500);
    return informer.cache.get(`${namespace}/a`)?.color === 'blue';
  });
  assert.equal(informer.cache.byUid(before), undefined);
  await untilShown(['a']);
  assert.equal(count('list'), 1);
});

test('keys of owners are given for the object before and after a change', async (t) => {
  const { informer, create, start, remove } = await bench(t);
  const colors: string[] = [];
  informer.subscribe(
    (key) => colors.push(key),
    ({ value }) => [value?.color ?? ''],
  );
  await create('a', 'red');
  await start();
  await remove('a');
  await until('the delete was seen', () => colors.length === 2);
  assert.deepEqual(colors, ['red', 'red']);
});

for (const [how, act] of [
  ['closed cleanly after each event', { kind: 'close', afterEvents: 1 }],
  ['reset after each event', { kind: 'reset', afterEvents: 1 }],
  ['cut in the middle of each second line', { kind: 'truncate', afterEvents: 1 }],
] as const) {
  test(`FA4 a watch ${how} loses nothing and needs no list`, async (t) => {
    const { create, remove, start, proxy, untilShown, count, metric } = await bench(t);
    const fault = proxy.add({ verb: 'watch' }, act);
    await start();
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await create(name);
    await untilShown(['a', 'b', 'c', 'd', 'e', 'f']);
    await remove('a');
    await untilShown(['b', 'c', 'd', 'e', 'f']);
    assert.ok(fault.hits() >= 5, `${fault.hits()} watches`);
    assert.equal(count('list'), 1);
    const reason = act.kind === 'close' ? 'closed' : 'reset';
    assert.ok((await metric(`beeuni_watch_reconnects_total{kind="ServiceAccount",reason="${reason}"}`)) >= 4);
  });
}

test('C3 K26 a server that fails every watch is asked with a growing pause, and the cache goes stale', async (t) => {
  const { start, proxy, clock, informer, count, create, untilShown } = await bench(t);
  await start();
  const fault = proxy.add({ verb: 'watch' }, { kind: 'status', code: 500 });
  proxy.cutWatches('close');
  const from = count('watch');
  for (let second = 0; second < 130; second += 1) {
    await clock.advance(1_000);
    await until('the answers are there', () => proxy.calls.every(({ answered }) => answered));
  }
  assert.ok(fault.hits() >= 3 && count('watch') - from <= 131, `${count('watch') - from} watches in 130 s`);
  assert.ok(informer.isStale());
  fault.release();
  await create('a');
  await untilShown(['a']);
  assert.ok(!informer.isStale());
  assert.equal(count('list'), 1);
});

test('C6 clean closes without events are at least a second apart, and further with each', async (t) => {
  const { start, proxy, clock, count } = await bench(t);
  proxy.add({ verb: 'watch' }, { kind: 'close', afterEvents: 0 });
  await start();
  for (let step = 0; step < 60; step += 1) {
    await until('the watch has ended', () => proxy.calls.every(({ answered }) => answered));
    await clock.advance(500);
  }
  // 1, 2, 4, 8, 8 ... seconds apart.
  assert.ok(count('watch') >= 4 && count('watch') <= 7, `${count('watch')} watches in 30 s`);
});

test('C2 FA5 a watch that is silent is replaced after 90 s, and nothing is lost', async (t) => {
  const { start, create, proxy, clock, informer, count, metric, untilShown } = await bench(t);
  const hold = proxy.add({ verb: 'watch', count: 1 }, { kind: 'hold', afterEvents: 0 });
  await start();
  await until('the watch is held', () => hold.hits() === 1);
  await create('a');
  await clock.advance(89_000);
  assert.equal(count('watch'), 1);
  assert.ok(!informer.isStale());
  await clock.advance(2_000);
  await untilShown(['a']);
  assert.equal(count('list'), 1);
  assert.equal(await metric('beeuni_watch_stalls_total{kind="ServiceAccount"}'), 1);
});

test('K34 a kind in which nothing happens never goes stale, as a new watch is a sign of life', async (t) => {
  const { start, proxy, clock, informer, count } = await bench(t);
  proxy.add({ verb: 'watch' }, { kind: 'hold', afterEvents: 0 });
  await start();
  for (let step = 0; step < 30; step += 1) {
    await clock.advance(10_000);
    await until('a watch is open', () => count('watch') >= 1 && !informer.isStale());
  }
  assert.ok(count('watch') >= 3);
});

test('K34 without any sign of life for 120 s the cache is stale', async (t) => {
  const { start, proxy, clock, informer } = await bench(t);
  proxy.add({ verb: 'watch' }, { kind: 'hold' });
  await start();
  await clock.advance(119_000);
  assert.ok(!informer.isStale());
  await clock.advance(2_000);
  assert.ok(informer.isStale());
});

for (const [where, verb, act] of [
  ['as a status of the watch', 'watch', { kind: 'gone', as: 'status' }],
  ['as an ERROR event inside the watch', 'watch', { kind: 'gone', as: 'event' }],
] as const) {
  test(`FA6 410 ${where} leads to one list that shows what was deleted meanwhile`, async (t) => {
    const { start, create, remove, proxy, clock, count, untilShown, metric } = await bench(t);
    await create('a');
    await create('b');
    await start();
    const down = proxy.add({ verb: 'watch' }, { kind: 'refuse-before' });
    proxy.cutWatches('reset');
    await until('the watch is refused', async () => {
      await clock.advance(500);
      return down.hits() > 0;
    });
    await remove('a');
    await create('c');
    const gone = proxy.add({ verb, count: 1 }, act);
    down.release();
    await untilShown(['b', 'c']);
    assert.equal(gone.hits(), 1);
    assert.equal(count('list'), 2);
    assert.equal(await metric('beeuni_watch_relists_total{kind="ServiceAccount",reason="expired"}'), 1);
  });
}

test('FA6 410 in the middle of the pages starts the list again and shows each object once', async (t) => {
  const { informer, create, proxy, clock, names } = await bench(t, { pageSize: 2 });
  for (const name of ['a', 'b', 'c']) await create(name);
  const gone = proxy.add({ verb: 'list', from: 2, count: 1 }, { kind: 'gone', as: 'status' });
  informer.start();
  await until('the cache is synced', async () => {
    await clock.advance(500);
    return informer.hasSynced();
  });
  assert.equal(gone.hits(), 1);
  assert.deepEqual(names(), ['a', 'b', 'c']);
});

test('C4 a server that answers 410 to every watch is not listed in a loop', async (t) => {
  const { start, proxy, clock, count } = await bench(t);
  proxy.add({ verb: 'watch' }, { kind: 'gone', as: 'event' });
  await start();
  for (let second = 0; second < 60; second += 1) {
    await until('the answers are there', () => proxy.calls.every(({ answered }) => answered));
    await clock.advance(1_000);
  }
  assert.ok(count('list') >= 3 && count('list') <= 12, `${count('list')} lists in a minute`);
});

test('C5 an ERROR event that is not 410 ends the watch, and the next one goes on without a list', async (t) => {
  const { start, create, proxy, untilShown, count, metric } = await bench(t);
  const fault = proxy.add({ verb: 'watch', count: 1 }, { kind: 'error-event', code: 500 });
  await start();
  await create('a');
  await untilShown(['a']);
  assert.equal(fault.hits(), 1);
  assert.equal(count('list'), 1);
  assert.equal(await metric('beeuni_watch_reconnects_total{kind="ServiceAccount",reason="error"}'), 1);
});

test('FA8 a list that is refused with 429 waits as long as it is told, and the final state is complete', async (t) => {
  const { informer, create, proxy, clock, names, count } = await bench(t);
  await create('a');
  proxy.add({ verb: 'list', count: 1 }, { kind: 'status', code: 429, headers: { 'retry-after': '4' } });
  informer.start();
  await until('the first list was refused', () => count('list') === 1);
  await until('the informer waits', () => clock.pending() > 0);
  await clock.advance(3_500);
  assert.equal(count('list'), 1);
  await until('the cache is synced', async () => {
    await clock.advance(500);
    return informer.hasSynced();
  });
  assert.deepEqual(names(), ['a']);
});

test('FA9 a server that refuses connections for a minute is found again, without a crash or a storm', async (t) => {
  const { start, create, proxy, clock, informer, untilShown, connection } = await bench(t);
  await start();
  await proxy.goDown();
  const opened = connection.openedConnections();
  for (let second = 0; second < 60; second += 1) await clock.advance(1_000);
  assert.equal(connection.openedConnections(), opened);
  await create('a');
  await proxy.comeBack();
  await untilShown(['a']);
  assert.ok(!informer.isStale());
});

test('FA12 repeated and replayed events reach no handler twice', async (t) => {
  const { start, create, remove, proxy, keys, namespace, untilShown } = await bench(t);
  const repeat = proxy.add({ verb: 'watch' }, { kind: 'repeat' });
  await start();
  await create('a');
  await create('b');
  await create('c');
  await remove('b');
  await untilShown(['a', 'c']);
  await create('end');
  await untilShown(['a', 'c', 'end']);
  assert.ok(repeat.hits() >= 1);
  const key = (name: string) => `${namespace}/${name}`;
  assert.deepEqual(keys, [key('a'), key('b'), key('c'), key('b'), key('end')]);
});

test('FA13 a swallowed event is healed by the next full list, within ten minutes', async (t) => {
  const { start, create, proxy, clock, names, untilShown, count, metric } = await bench(t);
  proxy.add({ verb: 'watch' }, { kind: 'swallow', event: (type, name) => type === 'ADDED' && name === 'lost' });
  await start();
  await create('lost');
  await create('seen');
  await untilShown(['seen']);
  // The server's own watch limit and our relist timer are both on the way; only time passes here.
  for (let step = 0; step < 40 && count('list') === 1; step += 1) {
    await clock.advance(15_000);
    await until('no request is on its way', () => proxy.calls.every((call) => call.answered || call.verb === 'watch'));
  }
  await until('the list showed it', () => names().includes('lost'));
  assert.equal(count('list'), 2);
  assert.equal(await metric('beeuni_watch_relists_total{kind="ServiceAccount",reason="resync"}'), 1);
});

test('FA11 a view that is held back makes no second create: own writes are remembered until they are seen', async (t) => {
  const { start, create, proxy, ownWrites, namespace, untilShown } = await bench(t);
  const hold = proxy.add({ verb: 'watch', count: 1 }, { kind: 'hold', afterEvents: 0 });
  await start();
  const { uid } = await create('child');
  ownWrites.created('ServiceAccount', `${namespace}/child`, uid ?? '');
  assert.equal(ownWrites.createdUnseen('ServiceAccount', `${namespace}/child`), uid);
  hold.release();
  await untilShown(['child']);
  assert.equal(ownWrites.createdUnseen('ServiceAccount', `${namespace}/child`), undefined);
});

test('an informer that is stopped leaves no connection and no timer', async (t) => {
  const { start, informer, clock, connection } = await bench(t);
  await start();
  await informer.stop();
  assert.equal(clock.pending(), 0);
  await until('the connection of the watch is closed', () => connection.openConnections() <= 1);
});
