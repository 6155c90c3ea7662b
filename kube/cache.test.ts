// The cache: identity by uid, order by resource version, indexes, frozen values; and remembered own writes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '#test/support/manual-clock.ts';
import { Cache, compareResourceVersions, isOlderVersion } from './cache.ts';
import { OwnWrites } from './own-writes.ts';
import type { KubeObject } from './resource-types.ts';

const object = (
  name: string,
  uid: string,
  resourceVersion: string,
  more: Record<string, unknown> = {},
): KubeObject => ({
  metadata: { namespace: 'ns', name, uid, resourceVersion, ...(more['metadata'] as object) },
  ...(more['spec'] === undefined ? {} : { spec: more['spec'] }),
});

const cacheOf = () =>
  new Cache((of) => ({ color: (of['spec'] as { color: string } | undefined)?.color ?? 'none' }), {
    color: (entry) => [entry.value?.color ?? ''],
  });

test('C10 another uid under the same name is a delete and an add, in every index', () => {
  const cache = cacheOf();
  cache.put(object('a', 'u1', '10', { spec: { color: 'red' } }));
  const change = cache.put(object('a', 'u2', '20', { spec: { color: 'blue' } }));
  assert.equal(change.kind, 'replaced');
  assert.equal(change.before?.uid, 'u1');
  assert.equal(cache.view.byUid('u1'), undefined);
  assert.equal(cache.view.byUid('u2')?.key, 'ns/a');
  assert.deepEqual(cache.view.byIndex('color', 'red'), []);
});

test('FA12 repeated and old events change nothing, nor does an old delete', () => {
  const cache = cacheOf();
  cache.put(object('a', 'u1', '10'));
  cache.put(object('a', 'u1', '11', { spec: { color: 'red' } }));
  assert.equal(cache.put(object('a', 'u1', '11', { spec: { color: 'red' } })).kind, 'none');
  assert.equal(cache.put(object('a', 'u1', '10')).kind, 'none');
  assert.equal(cache.remove(object('a', 'u1', '9')).kind, 'none');
  assert.equal(cache.view.get('ns/a')?.color, 'red');
  assert.equal(cache.remove(object('a', 'u1', '12')).kind, 'deleted');
  assert.equal(cache.view.size(), 0);
});

test('resource versions are compared as numbers, opaque ones never', () => {
  assert.ok((compareResourceVersions('9', '10') ?? 0) < 0);
  assert.ok((compareResourceVersions('11', '10') ?? 0) > 0);
  assert.equal(compareResourceVersions('a9', 'a10'), undefined);
  assert.ok(isOlderVersion('18446744073709551614', '18446744073709551615'));
});

test('a full list deletes what it did not show', () => {
  const cache = cacheOf();
  cache.put(object('a', 'u1', '1'));
  cache.put(object('b', 'u2', '2'));
  assert.deepEqual(
    cache.retain(new Set(['ns/b'])).map(({ before }) => before?.name),
    ['a'],
  );
  assert.equal(cache.view.size(), 1);
});

test('C12 values are frozen to the bottom, and the index by owner follows the controller only', () => {
  const cache = new Cache((of) => of['spec'] as { list: number[] });
  const owners = [
    { apiVersion: 'v1', kind: 'X', name: 'x', uid: 'not-controller' },
    { apiVersion: 'v1', kind: 'Y', name: 'y', uid: 'owner', controller: true },
  ];
  cache.put(object('a', 'u1', '1', { spec: { list: [1] }, metadata: { ownerReferences: owners } }));
  assert.throws(() => cache.view.get('ns/a')?.list.push(2), TypeError);
  assert.equal(cache.view.byOwner('owner').length, 1);
  assert.equal(cache.view.byOwner('not-controller').length, 0);
});

test('an object that cannot be read stays in the cache with its problem', () => {
  const cache = new Cache(() => {
    throw new Error('spec.mode is new to me');
  });
  cache.put(object('a', 'u1', '1'));
  assert.equal(cache.view.get('ns/a'), undefined);
  assert.equal(cache.view.entry('ns/a')?.problem, 'spec.mode is new to me');
});

test('K28 an own create is remembered until the cache shows it, and 30 s at most', async () => {
  const clock = manualClock();
  const writes = new OwnWrites({ clock });
  writes.created('Pod', 'ns/a', 'u1');
  writes.seen('Pod', 'ns/a', undefined, true);
  assert.equal(writes.createdUnseen('Pod', 'ns/a'), 'u1');
  writes.seen('Pod', 'ns/a', 'u1', false);
  assert.equal(writes.createdUnseen('Pod', 'ns/a'), undefined);
  writes.created('Pod', 'ns/b', 'u2');
  await clock.advance(30_001);
  assert.equal(writes.createdUnseen('Pod', 'ns/b'), undefined);
});

test('K28 an own delete is remembered until the cache shows the object as going or gone', () => {
  const writes = new OwnWrites({ clock: manualClock() });
  writes.deleted('Pod', 'ns/a', 'u1');
  writes.seen('Pod', 'ns/a', 'u1', false);
  assert.equal(writes.deletedUnseen('Pod', 'ns/a', 'u1'), true);
  assert.equal(writes.deletedUnseen('Pod', 'ns/a', 'u2'), false);
  writes.seen('Pod', 'ns/a', 'u1', true);
  assert.equal(writes.deletedUnseen('Pod', 'ns/a', 'u1'), false);
});
