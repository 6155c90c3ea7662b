// The stream of facts over made-up rows and a clock that is moved by hand: heartbeats, pages, the reader's end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FactsFrame } from '#schema/wire/sync.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { FACTS_KEY, makeStreamFacts } from './facts.ts';
import type { FactRow } from './session-fact.ts';
import { makeWaker } from './waker.ts';

const gone = (version: number) => ({ uid: `u${version}`, kind: 'gone', version }) as FactRow;

const bench = (after: string | undefined, rows: FactRow[] = []) => {
  const clock = manualClock();
  const waker = makeWaker(clock);
  const frames: FactsFrame[] = [];
  const controller = new AbortController();
  let limit = Number.POSITIVE_INFINITY;
  const running = makeStreamFacts({
    readStream: async () => ({ epoch: 'e', horizon: 0, head: rows.at(-1)?.version ?? 0 }),
    readFacts: async (version, count) => rows.filter((row) => row.version > version).slice(0, count),
    waker,
    clock,
  })(after, {
    send: (frame) => {
      frames.push(frame);
      return frames.length < limit;
    },
    drained: async () => true,
    signal: controller.signal,
  });
  return {
    clock,
    rows,
    frames,
    running,
    wake: () => waker.wake(FACTS_KEY),
    leave: () => controller.abort(),
    leaveAfter: (count: number) => {
      limit = count;
    },
    types: () => frames.map((frame) => frame.type),
  };
};

test('10-kubernetes §6 a heartbeat comes every 15 s, also while changes come', async () => {
  const stream = bench('e.0');
  await stream.clock.advance(0);
  for (let second = 1; second <= 30; second += 1) {
    stream.rows.push(gone(second));
    stream.wake();
    await stream.clock.advance(1_000);
  }
  assert.equal(stream.types().filter((type) => type === 'heartbeat').length, 2);
  assert.equal(stream.types().filter((type) => type === 'fact').length, 30);
  stream.leave();
  await stream.running;
});

test('more facts than a page are all sent before the snapshot ends', async () => {
  const stream = bench(
    'e.0',
    Array.from({ length: 1_201 }, (_, index) => gone(index + 1)),
  );
  await stream.clock.advance(0);
  assert.equal(stream.frames.length, 1_202);
  assert.deepEqual(stream.frames.at(-1), { type: 'snapshot-end', cursor: 'e.1201' });
  stream.leave();
  await stream.running;
});

test('a reader that is gone ends the stream at once and leaves no timer', async () => {
  const stream = bench('e.0', [gone(1), gone(2), gone(3)]);
  stream.leaveAfter(2);
  await stream.running;
  assert.equal(stream.frames.length, 2);
  assert.equal(stream.clock.pending(), 0);
  const waiting = bench(undefined);
  await waiting.clock.advance(0);
  waiting.leave();
  await waiting.running;
  assert.equal(waiting.clock.pending(), 0);
});
