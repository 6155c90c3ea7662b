// Starting and stopping the parts of a process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '#test/support/manual-clock.ts';
import { type LifecyclePorts, type Part, runParts } from './lifecycle.ts';
import { createLogger } from './log.ts';

const bench = () => {
  const steps: string[] = [];
  const logged: string[] = [];
  const clock = manualClock();
  let signal: (name: string) => void = () => {};
  const ports: LifecyclePorts = {
    clock,
    log: createLogger({ level: 'debug', write: (line) => void logged.push(line) }),
    onSignal: (call) => {
      signal = call;
      return () => {};
    },
  };
  const part = (name: string, more: Partial<Part> = {}): Part => ({
    name,
    start: () => void steps.push(`start ${name}`),
    stop: () => void steps.push(`stop ${name}`),
    ...more,
  });
  return { steps, logged, clock, ports, part, send: (name: string) => signal(name) };
};

test('K35 parts start in order and stop in reverse, and a signal ends with code 0', async () => {
  const { steps, ports, part, send, clock } = bench();
  const code = runParts(ports, () => [part('a'), part('b')]);
  await clock.advance(0);
  send('SIGTERM');
  assert.equal(await code, 0);
  assert.deepEqual(steps, ['start a', 'start b', 'stop b', 'stop a']);
});

test('a start that fails stops what began and ends with code 1', async () => {
  const { steps, ports, part } = bench();
  const broken = part('b', {
    start: () => {
      throw new Error('no');
    },
  });
  assert.equal(await runParts(ports, () => [part('a'), broken, part('c')]), 1);
  assert.deepEqual(steps, ['start a', 'stop b', 'stop a']);
});

test('a stop that hangs or throws does not keep the others from stopping', async () => {
  const { steps, logged, ports, part, clock, send } = bench();
  const code = runParts(ports, () => [
    part('a'),
    part('hangs', { stop: () => new Promise(() => {}), stopLimitMs: 500 }),
    part('throws', {
      stop: () => {
        throw new Error('no');
      },
    }),
  ]);
  await clock.advance(0);
  send('SIGTERM');
  await clock.advance(500);
  assert.equal(await code, 0);
  assert.equal(steps.at(-1), 'stop a');
  assert.ok(logged.some((line) => line.includes('did not stop in time')));
});

test('K35 a part that gives up ends the process with code 1', async () => {
  const { ports, part, clock, steps } = bench();
  let giveUp: (reason: string) => void = () => {};
  const code = runParts(ports, (fail) => {
    giveUp = fail;
    return [part('a')];
  });
  await clock.advance(0);
  giveUp('lease lost');
  assert.equal(await code, 1);
  assert.equal(steps.at(-1), 'stop a');
});

test('a start that hangs ends with code 1 after its limit, and its signal fires', async () => {
  const { ports, part, clock } = bench();
  let aborted = false;
  const code = runParts(ports, () => [
    part('slow', {
      startLimitMs: 1_000,
      start: (signal) =>
        new Promise(() => {
          signal.addEventListener('abort', () => {
            aborted = true;
          });
        }),
    }),
  ]);
  await clock.advance(1_000);
  assert.equal(await code, 1);
  assert.ok(aborted);
});
