// The work queue: order, lanes, back-off, timers, drain. All on a clock that the test moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLogger } from '#base/log.ts';
import { createMetrics } from '#base/metrics.ts';
import { QUEUE_METRICS } from '#schema/metrics.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { type QueueOptions, type RunOutcome, WorkQueue } from './queue.ts';

const bench = (options: Partial<QueueOptions> = {}) => {
  const clock = manualClock();
  const runs: string[] = [];
  const open = new Map<string, (outcome: RunOutcome) => void>();
  const { instruments: metrics, page } = createMetrics(QUEUE_METRICS);
  const queue = new WorkQueue(
    {
      name: 'session',
      lanes: 1,
      run: (key) => {
        runs.push(key);
        return new Promise((resolve) => open.set(key, resolve));
      },
      ...options,
    },
    { clock, random: () => 0, log: createLogger({ level: 'error', write: () => {} }), metrics },
  );
  const finish = async (key: string, outcome: RunOutcome = { kind: 'done' }) => {
    const resolve = open.get(key);
    assert.ok(resolve, `${key} is running`);
    open.delete(key);
    resolve(outcome);
    await clock.advance(0);
  };
  return { clock, runs, queue, finish, open, page };
};

test('K36 a key that is added many times waits once', async () => {
  const { queue, runs, finish } = bench();
  for (let n = 0; n < 5; n += 1) queue.add('ns/a');
  queue.start();
  await finish('ns/a');
  assert.deepEqual(runs, ['ns/a']);
});

test('K36 a change during the run of a key runs it once more, and never at the same time', async () => {
  const { queue, runs, finish } = bench({ lanes: 8 });
  queue.start();
  queue.add('ns/a');
  queue.add('ns/a');
  queue.add('ns/a', 'resync');
  assert.deepEqual(runs, ['ns/a']);
  await finish('ns/a');
  assert.deepEqual(runs, ['ns/a', 'ns/a']);
  await finish('ns/a');
  assert.equal(runs.length, 2);
});

test("K36 a person's change goes before resyncs, also when the key waited as a resync", async () => {
  const { queue, runs, finish } = bench();
  for (const key of ['r1', 'r2', 'r3']) queue.add(key, 'resync');
  queue.add('p1');
  queue.add('r3', 'person');
  queue.start();
  for (const key of ['p1', 'r3', 'r1', 'r2']) await finish(key);
  assert.deepEqual(runs, ['p1', 'r3', 'r1', 'r2']);
});

test('K36 failures back off from 0.25 s, doubling, and are forgotten on success', async () => {
  const { queue, runs, finish, clock } = bench({ backoff: { baseMs: 250, maxMs: 300_000 } });
  queue.start();
  queue.add('a');
  await finish('a', { kind: 'retry' });
  await clock.advance(249);
  assert.equal(runs.length, 1);
  await clock.advance(1);
  assert.equal(runs.length, 2);
  await finish('a', { kind: 'retry', afterMs: 60_000 });
  await clock.advance(59_999);
  assert.equal(runs.length, 2, 'the wish of the server is obeyed');
  await clock.advance(1);
  await finish('a');
  queue.add('a');
  await finish('a', { kind: 'retry' });
  await clock.advance(250);
  assert.equal(runs.length, 5, 'the count of failures began again');
});

test('K39 a run that throws is a retry of its key only', async () => {
  const runs: string[] = [];
  const { queue, clock } = bench({
    run: async (key) => {
      runs.push(key);
      if (key === 'bad') throw new Error('no');
      return { kind: 'done' };
    },
  });
  queue.start();
  queue.add('bad');
  queue.add('good');
  await clock.advance(0);
  assert.deepEqual(runs, ['bad', 'good']);
  await clock.advance(250);
  assert.deepEqual(runs, ['bad', 'good', 'bad']);
});

test('K36 of several timers of a key the earliest counts', async () => {
  const { queue, runs, finish, clock } = bench();
  queue.start();
  queue.addAfter('a', 5_000);
  queue.addAfter('a', 1_000);
  queue.addAfter('a', 9_000);
  await clock.advance(999);
  assert.equal(runs.length, 0);
  await clock.advance(1);
  await finish('a');
  await clock.advance(20_000);
  assert.equal(runs.length, 1);
});

test('K37 a slow key delays only its lane', async () => {
  const { queue, runs, finish } = bench({ lanes: 32 });
  queue.start();
  queue.add('slow');
  for (let n = 0; n < 40; n += 1) queue.add(`key-${n}`);
  const started = runs.length;
  assert.ok(started > 20, `${started} keys run at once`);
  for (const key of runs.filter((key) => key !== 'slow')) await finish(key);
  assert.ok(runs.length > started);
});

test('K37 a run is aborted after its time limit and its lane stays taken until it ends', async () => {
  const aborted: string[] = [];
  const ends: (() => void)[] = [];
  const { queue, clock } = bench({
    run: (key, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => aborted.push(key));
        ends.push(() => resolve({ kind: 'done' }));
      }),
  });
  queue.start();
  queue.add('a');
  queue.add('b');
  await clock.advance(30_000);
  assert.deepEqual(aborted, ['a']);
  assert.equal(ends.length, 1);
  ends[0]?.();
  await clock.advance(0);
  assert.equal(ends.length, 2);
});

test('K35 drain takes no more keys and ends when the runs in flight have ended', async () => {
  const { queue, runs, finish, clock } = bench();
  queue.start();
  queue.add('a');
  queue.add('b');
  const drained = queue.drain(5_000);
  queue.add('c');
  queue.addAfter('d', 10);
  await clock.advance(100);
  await finish('a');
  assert.equal(await drained, true);
  assert.deepEqual(runs, ['a']);
  assert.equal(clock.pending(), 0);
});

test('K35 drain aborts what does not end in time', async () => {
  let aborted = false;
  const { queue, clock } = bench({
    run: (_key, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted = true;
          resolve({ kind: 'done' });
        });
      }),
  });
  queue.start();
  queue.add('a');
  const drained = queue.drain(5_000);
  await clock.advance(5_000);
  assert.equal(await drained, false);
  assert.ok(aborted);
});

test('the page shows depth and the age of the oldest key', async () => {
  const { queue, clock, page } = bench();
  queue.add('a');
  await clock.advance(2_000);
  queue.add('b');
  queue.report();
  const text = await page.render();
  assert.match(text, /beeuni_workqueue_depth\{queue="session"\} 2/);
  assert.match(text, /beeuni_workqueue_oldest_age_seconds\{queue="session"\} 2/);
  assert.equal(queue.isMoving(1_000), false);
});

test('K37 whatever happens, a key never runs twice at once and the last change is never lost', async () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd');
  const step = fc.oneof(
    fc.record({
      do: fc.constant('add' as const),
      key,
      priority: fc.constantFrom('person' as const, 'resync' as const),
    }),
    fc.record({ do: fc.constant('finish' as const), key, ok: fc.boolean() }),
    fc.record({ do: fc.constant('later' as const), key, ms: fc.integer({ min: 1, max: 2_000 }) }),
    fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 3_000 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), async (steps, lanes) => {
      const { queue, clock, open, runs, finish } = bench({
        lanes,
        run: (name) => {
          assert.ok(!open.has(name), `${name} runs twice`);
          runs.push(name);
          return new Promise((resolve) => open.set(name, resolve));
        },
      });
      queue.start();
      for (const action of steps) {
        if (action.do === 'add') queue.add(action.key, action.priority);
        else if (action.do === 'later') queue.addAfter(action.key, action.ms);
        else if (action.do === 'advance') await clock.advance(action.ms);
        else if (open.has(action.key)) await finish(action.key, action.ok ? { kind: 'done' } : { kind: 'retry' });
      }
      const before = runs.length;
      for (const name of ['a', 'b', 'c', 'd']) queue.add(name);
      const wanted = new Set(['a', 'b', 'c', 'd']);
      while (open.size > 0) {
        const [name] = open.keys();
        if (name !== undefined) await finish(name);
      }
      for (const name of runs.slice(before)) wanted.delete(name);
      assert.deepEqual([...wanted], []);
    }),
    { numRuns: 60 },
  );
});
