// Lives that are played: how they follow one another.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '#test/support/manual-clock.ts';
import { type KeepRunningPorts, keepRunning, type LifeEnd } from './keep-running.ts';
import { createLogger } from './log.ts';

type Life = Readonly<{
  ready: () => void;
  lost: (reason: string) => void;
  end: (end: LifeEnd) => void;
  fail: (error: Error) => void;
}>;

const scene = (changes: Partial<KeepRunningPorts> = {}) => {
  const clock = manualClock();
  const lives: Life[] = [];
  const seen = { cleaned: 0, changes: [] as string[], givenUp: [] as string[] };
  const kept = keepRunning({
    live: ({ ready, lost, stopping }) => {
      const { promise, resolve, reject } = Promise.withResolvers<LifeEnd>();
      lives.push({ ready, lost, end: resolve, fail: reject });
      stopping.addEventListener('abort', () => resolve({ reason: 'stopped', isProven: false }));
      return promise;
    },
    cleanUp: async () => {
      seen.cleaned += 1;
    },
    onGiveUp: (reason) => seen.givenUp.push(reason),
    onChange: () => seen.changes.push(kept.state().state),
    backoff: { baseMs: 100, maxMs: 10_000 },
    brokenAfter: 3,
    maxRestarts: 10,
    what: 'the thing',
    clock,
    // The longest pause: twice as long after each end.
    random: () => 1,
    log: createLogger({ level: 'error', write: () => {} }),
    ...changes,
  });
  const endLast = (end: Partial<LifeEnd> = {}) => lives.at(-1)?.end({ reason: 'gone', isProven: false, ...end });
  return { clock, lives, seen, kept, endLast };
};

test('another life begins after a pause that doubles, and some ends in a row are an error that is still tried', async () => {
  const { clock, lives, seen, kept, endLast } = scene();
  lives[0]?.ready();
  assert.deepEqual(kept.state(), { state: 'ok', error: null, restarts: 0 });
  for (const [pauseMs, state, next] of [
    [200, 'down', 'starting'],
    [400, 'down', 'starting'],
    [800, 'error', 'error'],
    [1_600, 'error', 'error'],
  ] as const) {
    const before = lives.length;
    endLast();
    await clock.advance(pauseMs - 1);
    assert.deepEqual([kept.state().state, kept.state().error, lives.length], [state, 'gone', before]);
    await clock.advance(1);
    assert.deepEqual([kept.state().state, lives.length], [next, before + 1]);
  }
  assert.deepEqual([kept.state().restarts, seen.cleaned, seen.givenUp], [4, 4, []]);
});

test('a life that did what it is for begins a new count, and one that does not start is an end like any other', async () => {
  const { clock, lives, kept, endLast } = scene();
  for (const ms of [200, 400]) {
    lives.at(-1)?.fail(new Error('cannot start'));
    await clock.advance(ms);
  }
  assert.equal(kept.state().error, 'cannot start');
  endLast({ isProven: true });
  await clock.advance(199);
  assert.deepEqual([kept.state().state, lives.length], ['down', 3]);
  await clock.advance(1);
  assert.equal(lives.length, 4);
});

test('nothing is started again after an end that cannot be mended, or after too many', async () => {
  const stuck = scene();
  stuck.lives[0]?.ready();
  stuck.lives[0]?.lost('it hangs');
  assert.equal(stuck.kept.state().state, 'down');
  stuck.endLast({ reason: 'it hangs', giveUp: true });
  await stuck.clock.advance(60_000);
  assert.deepEqual([stuck.lives.length, stuck.seen.givenUp], [1, ['the thing cannot be ended: it hangs']]);
  assert.equal(stuck.seen.cleaned, 1);

  const many = scene({ maxRestarts: 2 });
  for (let n = 0; n < 3; n += 1) {
    many.endLast();
    await many.clock.advance(60_000);
  }
  assert.deepEqual([many.lives.length, many.kept.state().state], [3, 'down']);
  assert.deepEqual(many.seen.givenUp, ['the thing was replaced 2 times, the last time: gone']);
});

test('stop lets the life that runs end, also in a pause, and starts no other', async () => {
  const running = scene();
  running.lives[0]?.ready();
  await running.kept.stop().done;
  assert.deepEqual([running.lives.length, running.kept.state()], [1, { state: 'down', error: null, restarts: 0 }]);
  const pausing = scene();
  pausing.endLast();
  await pausing.clock.advance(10);
  await pausing.kept.stop().done;
  assert.deepEqual([pausing.lives.length, pausing.clock.pending()], [1, 0]);
});
