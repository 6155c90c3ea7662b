// Places: limits at once, oldest wish first, and no place that is lost or given twice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type SlotHolder, StartSlots } from './start-slots.ts';

const holder = (uid: string, changes: Partial<SlotHolder> = {}): SlotHolder => ({
  uid,
  key: `ns/${uid}`,
  project: 'ns/p',
  maxRunning: 100,
  sinceMs: 0,
  ...changes,
});

const make = (limits: Partial<Readonly<{ running: number; starts: number; startsPerProject: number }>> = {}) => {
  const woken: string[] = [];
  const slots = new StartSlots({
    limits: { running: 100, starts: 100, startsPerProject: 100, ...limits },
    wake: (key) => void woken.push(key),
  });
  return { slots, woken };
};

test('a wish is granted at once while there is a place, and names the limit otherwise', () => {
  const { slots } = make({ running: 2 });
  slots.request(holder('a'));
  slots.request(holder('b', { project: 'ns/q', maxRunning: 0 }));
  slots.request(holder('c'));
  slots.request(holder('d'));
  assert.deepEqual(slots.slotOf('a'), { state: 'granted' });
  assert.deepEqual(slots.slotOf('b'), { state: 'waiting', because: 'ProjectRunning' });
  assert.deepEqual(slots.slotOf('c'), { state: 'granted' });
  assert.deepEqual(slots.slotOf('d'), { state: 'waiting', because: 'InstallationRunning' });
  assert.equal(slots.queued, 2);
});

test('the oldest wish is served first when a place is free again', () => {
  const { slots, woken } = make({ running: 1 });
  slots.request(holder('a'));
  slots.request(holder('young', { sinceMs: 20 }));
  slots.request(holder('old', { sinceMs: 10 }));
  slots.seen('a', 'ns/p', 'running');
  slots.seen('a', 'ns/p', undefined);
  assert.deepEqual(woken, ['ns/old']);
  assert.deepEqual(slots.slotOf('young'), { state: 'waiting', because: 'InstallationRunning' });
});

test('starts of one Project do not hold up those of another', () => {
  const { slots } = make({ startsPerProject: 1 });
  slots.request(holder('a'));
  slots.request(holder('b'));
  slots.request(holder('c', { project: 'ns/q' }));
  assert.deepEqual(slots.slotOf('b'), { state: 'waiting', because: 'Starts' });
  assert.deepEqual(slots.slotOf('c'), { state: 'granted' });
  slots.seen('a', 'ns/p', 'starting');
  assert.equal(slots.slotOf('b').state, 'waiting');
  slots.seen('a', 'ns/p', 'running');
  assert.equal(slots.slotOf('b').state, 'granted');
});

test('a raised limit of a Project serves those that wait', () => {
  const { slots, woken } = make();
  slots.request(holder('a', { maxRunning: 0 }));
  assert.equal(slots.slotOf('a').state, 'waiting');
  slots.limit('a', 1);
  assert.equal(slots.slotOf('a').state, 'granted');
  assert.deepEqual(woken, ['ns/a']);
});

test('whatever happens, no more places are held than there are, and all are free at the end', () => {
  const uids = ['a', 'b', 'c', 'd', 'e', 'f'];
  const act = fc.record({
    uid: fc.constantFrom(...uids),
    kind: fc.constantFrom('request', 'release', 'starting', 'running', 'gone', 'forget'),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      const { slots } = make({ running: 3, starts: 2, startsPerProject: 2 });
      const running = new Map<string, 'starting' | 'running'>();
      for (const { uid, kind } of acts) {
        if (kind === 'request' && !running.has(uid)) slots.request(holder(uid));
        if (kind === 'release') slots.release(uid);
        // A pod is made under a grant only, as plans do.
        if (kind === 'starting' && slots.slotOf(uid).state === 'granted') running.set(uid, 'starting');
        if (kind === 'running' && running.has(uid)) running.set(uid, 'running');
        if (kind === 'gone' || kind === 'forget') running.delete(uid);
        if (kind === 'forget') slots.forget(uid);
        else slots.seen(uid, 'ns/p', running.get(uid));
        const granted = uids.filter((each) => slots.slotOf(each).state === 'granted').length;
        const starting = [...running.values()].filter((stage) => stage === 'starting').length;
        assert.ok(granted + running.size <= 3, 'too many run');
        assert.ok(granted + starting <= 2, 'too many start');
      }
      for (const uid of uids) slots.forget(uid);
      assert.equal(slots.queued, 0);
      for (const uid of ['x', 'y']) {
        slots.request(holder(uid));
        assert.equal(slots.slotOf(uid).state, 'granted', 'a place was lost');
      }
    }),
  );
});
