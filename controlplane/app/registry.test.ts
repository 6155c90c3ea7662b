// The registry in memory, with a clock that a test moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnavailableError } from '#base/errors.ts';
import type { Registry } from './provider-ports.ts';
import { makeRegistryReader } from './registry.ts';

const rig = () => {
  let nowMs = 0;
  let generation = 1;
  let isDown = false;
  const asked = { generation: 0, registry: 0 };
  const check = (): void => {
    if (isDown) throw new UnavailableError('database_unavailable', 'the database does not answer');
  };
  const reader = makeRegistryReader({
    store: {
      generation: async () => {
        asked.generation += 1;
        check();
        return generation;
      },
      registry: async (): Promise<Registry> => {
        asked.registry += 1;
        check();
        return { generation, providers: [] };
      },
    },
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs, startTimer: () => () => undefined },
  });
  return {
    reader,
    asked,
    pass: (ms: number) => {
      nowMs += ms;
    },
    change: () => {
      generation += 1;
    },
    setDown: (down: boolean) => {
      isDown = down;
    },
  };
};

test('model calls share one read, and a change is seen 2 s later', async () => {
  const { reader, asked, pass, change } = rig();
  await Promise.all([reader.cached(), reader.cached(), reader.cached()]);
  assert.deepEqual(asked, { generation: 0, registry: 1 });
  change();
  assert.equal((await reader.cached()).generation, 1);
  pass(2_000);
  assert.equal((await reader.cached()).generation, 2);
  pass(2_000);
  await reader.cached();
  assert.deepEqual(asked, { generation: 2, registry: 2 });
});

test('FC11 the registry serves calls for ten minutes without a database, and decisions not at all', async () => {
  const { reader, pass, setDown } = rig();
  await reader.cached();
  setDown(true);
  pass(599_000);
  assert.equal((await reader.cached()).generation, 1);
  await assert.rejects(
    reader.fresh(),
    (error: unknown) => error instanceof UnavailableError && error.code === 'registry_unavailable',
  );
  pass(2_000);
  await assert.rejects(async () => reader.cached(), UnavailableError);
  setDown(false);
  assert.equal((await reader.cached()).generation, 1);
});
