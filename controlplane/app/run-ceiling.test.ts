// The ceiling of a run's model requests: that of its snapshot, asked for once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMPILED_BUDGETS } from '#schema/settings/budgets.ts';
import { COMPILED_HAB } from '#schema/settings/hab.ts';
import { NO_ROLES } from '#schema/settings/roles.ts';
import { runSettings } from '#schema/settings/run-settings.ts';
import { makeCeilingOfRun } from './run-ceiling.ts';

const snapshot = runSettings.parse({
  revision: 1,
  hash: 'a'.repeat(64),
  budgets: { max_model_request_bytes: 1_000 },
  roles: {},
});
const NOW = 5_000;
const settings = {
  current: async () => ({
    revision: 2,
    budgets: { ...COMPILED_BUDGETS, max_model_request_bytes: NOW },
    roles: NO_ROLES,
    hab: COMPILED_HAB,
  }),
};

test('B13 B19 a run has the ceiling of its snapshot whatever counts now, and is looked up once', async () => {
  const asked: string[] = [];
  const ceilingOf = makeCeilingOfRun({
    findTurnSettings: async (sessionUid, turnId) => {
      asked.push(`${sessionUid} ${turnId}`);
      return sessionUid === 's1' ? snapshot : undefined;
    },
    settings,
  });
  assert.equal(await ceilingOf('s1', 't1'), 1_000);
  assert.equal(ceilingOf('s1', 't1'), 1_000, 'without waiting');
  assert.equal(await ceilingOf('s2', 't1'), NOW, 'the turn of another session is none of its own');
  assert.equal(await ceilingOf('s1', null), NOW);
  assert.deepEqual(asked, ['s1 t1', 's2 t1']);
});

test('B20 a turn of before pinning has the compiled ceiling', async () => {
  const ceilingOf = makeCeilingOfRun({ findTurnSettings: async () => null, settings });
  assert.equal(await ceilingOf('s1', 't1'), COMPILED_BUDGETS.max_model_request_bytes);
});

test('a database that is away leaves what counts now, and the turn is looked up again later', async () => {
  let isAway = true;
  const ceilingOf = makeCeilingOfRun({
    findTurnSettings: async () => {
      if (isAway) throw new Error('the database could not be reached');
      return snapshot;
    },
    settings,
  });
  assert.equal(await ceilingOf('s1', 't1'), NOW);
  isAway = false;
  assert.equal(await ceilingOf('s1', 't1'), 1_000);
});

test('no number of turns is remembered without bound', async () => {
  let asked = 0;
  const findTurnSettings = async () => {
    asked += 1;
    return snapshot;
  };
  const ceilingOf = makeCeilingOfRun({ findTurnSettings, settings });
  for (let n = 0; n < 5_000; n += 1) await ceilingOf('s', `t${n}`);
  await ceilingOf('s', 't4999');
  assert.equal(asked, 5_000);
  await ceilingOf('s', 't0');
  assert.equal(asked, 5_001, 'the oldest was forgotten');
});
