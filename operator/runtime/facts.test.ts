// The stream of facts: snapshots, changes, resets, and when the control plane counts as down.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '#base/log.ts';
import { createMetrics } from '#base/metrics.ts';
import { FACTS_METRICS } from '#schema/metrics.ts';
import type { FactsFrame } from '#schema/wire/sync.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { aProjectFact, aSessionFact, at } from '#test/support/session-fixtures.ts';
import { until } from '#test/support/until.ts';
import { Facts } from './facts.ts';

/** A stream that a test writes to; `end` closes it as a server does. */
const makeStream = () => {
  const frames: FactsFrame[] = [];
  let wake = () => {};
  let ended = false;
  return {
    send: (frame: FactsFrame) => {
      frames.push(frame);
      wake();
    },
    end: () => {
      ended = true;
      wake();
    },
    open: async function* (signal: AbortSignal): AsyncGenerator<FactsFrame> {
      signal.addEventListener('abort', () => {
        ended = true;
        wake();
      });
      while (!ended || frames.length > 0) {
        const frame = frames.shift();
        if (frame !== undefined) yield frame;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
};

const make = () => {
  const clock = manualClock();
  const streams: ReturnType<typeof makeStream>[] = [];
  const cursors: (string | undefined)[] = [];
  const told: (string | undefined)[] = [];
  let refuses = false;
  const facts = new Facts({
    open: async (after, signal) => {
      if (refuses) throw new Error('connection refused');
      const stream = makeStream();
      streams.push(stream);
      cursors.push(after);
      return stream.open(signal);
    },
    clock,
    serverNowMs: () => Date.parse(at(0)),
    random: () => 0,
    log: createLogger({ level: 'error', write: () => {} }),
    metrics: createMetrics(FACTS_METRICS).instruments,
  });
  facts.subscribe((uid) => void told.push(uid));
  facts.start();
  const stream = (n: number) => until(`stream ${n} is open`, () => streams[n - 1]);
  return { facts, clock, stream, cursors, told, refuse: (is: boolean) => void (refuses = is) };
};

const session = (uid: string, cursor: string): FactsFrame => ({
  type: 'fact',
  cursor,
  fact: { ...aSessionFact('p'), uid },
});

test('§6 the control plane is available once the first snapshot is complete, and not before', async () => {
  const { facts, stream, told } = make();
  const first = await stream(1);
  first.send(session('s1', '1'));
  await until('the fact is known', () => facts.session('s1'));
  assert.equal(facts.controlPlane.state, 'connecting');
  first.send({ type: 'snapshot-end', cursor: '1' });
  await until('it is available', () => facts.controlPlane.state === 'available');
  assert.deepEqual(told, ['s1', undefined]);
  first.end();
  await facts.stop();
});

test('§6 a stream that breaks is resumed after the last cursor, and nothing changes meanwhile', async () => {
  const { facts, clock, stream, cursors, told } = make();
  const first = await stream(1);
  first.send(session('s1', '1'));
  first.send({ type: 'snapshot-end', cursor: '1' });
  first.send(session('s2', '2'));
  await until('both are known', () => facts.session('s2'));
  const before = told.length;
  first.end();
  await until('it waits to connect again', () => clock.pending() > 1);
  await clock.advance(1_000);
  const second = await stream(2);
  assert.deepEqual(cursors, [undefined, '2']);
  assert.equal(facts.controlPlane.state, 'available');
  assert.equal(told.length, before);
  second.end();
  await facts.stop();
});

test('§6 a reset brings a new snapshot; what is not in it is gone only at its end', async () => {
  const { facts, stream } = make();
  const first = await stream(1);
  first.send(session('old', '1'));
  first.send({ type: 'snapshot-end', cursor: '1' });
  await until('it is available', () => facts.controlPlane.state === 'available');
  first.send({ type: 'reset' });
  first.send({ type: 'fact', cursor: '9', fact: { ...aProjectFact(), uid: 'new' } });
  await until('the new fact is known', () => facts.project('new'));
  assert.ok(facts.session('old'), 'an old fact went before the snapshot was complete');
  first.send({ type: 'snapshot-end', cursor: '9' });
  await until('the old fact is gone', () => facts.session('old') === undefined);
  first.end();
  await facts.stop();
});

test('§6 30 seconds without a frame are down, a frame is available again, and each is told once', async () => {
  const { facts, clock, stream, told, refuse } = make();
  const first = await stream(1);
  first.send({ type: 'snapshot-end', cursor: '1' });
  await until('it is available', () => facts.controlPlane.state === 'available');
  refuse(true);
  first.end();
  await clock.advance(29_000);
  assert.equal(facts.controlPlane.state, 'available');
  await clock.advance(2_000);
  assert.equal(facts.controlPlane.state, 'down');
  refuse(false);
  await clock.advance(10_000);
  const second = await stream(2);
  second.send({ type: 'heartbeat', at: at(0) });
  await until('it is available again', () => facts.controlPlane.state === 'available');
  assert.deepEqual(told, [undefined, undefined, undefined]);
  second.end();
  await facts.stop();
});

test('§6 a control plane that never answers is down after 30 seconds', async () => {
  const { facts, clock, refuse } = make();
  refuse(true);
  await clock.advance(31_000);
  assert.equal(facts.controlPlane.state, 'down');
  await facts.stop();
});
