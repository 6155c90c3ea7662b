// Budgets and limits of the environment: what counts, what degrades, and what is reported.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMPILED_LIMITS } from '#schema/settings/budgets.ts';
import { effectiveBudgets } from './effective-budgets.ts';
import { parseDurationMs, readSettingsEnvironment } from './settings-environment.ts';

test('B43 a variable sets its knob, and the prefix BEEUNI_ wins over its alias', () => {
  const { budgets, problems } = readSettingsEnvironment({
    BEEUNI_COMPACTION_TAIL_BYTES: '1000',
    TEMPORALITY_COMPACTION_TAIL_BYTES: '2000',
    TEMPORALITY_COMPACTION_KEEP_GROUPS_MAX: '9',
    BEEUNI_COMPACTION_KEEP_GROUPS_MIN: '',
    TEMPORALITY_COMPACTION_KEEP_GROUPS_MIN: '3',
  });
  assert.deepEqual(budgets, { compaction_tail_bytes: 1_000, keep_groups_max: 9, keep_groups_min: 3 });
  assert.deepEqual(problems, []);
});

test('B12 a value that cannot be used degrades to the default and is reported under its own name', () => {
  const wrong = ['x', '-1', '1.5', '1e3', '0', '0x10', '99999999999999999999', 'NaN', 'Infinity', '１'];
  for (const value of wrong) {
    const { budgets, problems } = readSettingsEnvironment({ BEEUNI_TOOL_OUTPUT_MAX_BYTES: value });
    assert.deepEqual([value, budgets], [value, {}]);
    assert.deepEqual([problems.length, problems[0]?.name], [1, 'BEEUNI_TOOL_OUTPUT_MAX_BYTES'], value);
    assert.match(problems[0]?.message ?? '', /so the default 524288 of tool output max bytes counts$/);
  }
});

test('B12 a wrong first name is not made good by its alias', () => {
  const { budgets } = readSettingsEnvironment({
    BEEUNI_COMPACTION_TAIL_BYTES: 'x',
    TEMPORALITY_COMPACTION_TAIL_BYTES: '2000',
  });
  assert.deepEqual(budgets, {});
});

test('B12 B25 knobs that contradict each other degrade together, and the rest counts', () => {
  const { budgets, problems } = readSettingsEnvironment({
    BEEUNI_COMPACTION_KEEP_GROUPS_MIN: '9',
    BEEUNI_COMPACTION_TAIL_BYTES: '1000',
    BEEUNI_MAX_MODEL_REQUEST_BYTES: '1000000',
  });
  assert.deepEqual(budgets, { compaction_tail_bytes: 1_000 });
  assert.deepEqual(
    problems.map(({ name, message }) => [name, message]),
    [
      ['BEEUNI_COMPACTION_KEEP_GROUPS_MIN', 'breaks keep_groups_min ≤ keep_groups_max, so the default 2 counts'],
      [
        'BEEUNI_MAX_MODEL_REQUEST_BYTES',
        'breaks compaction_trigger_bytes ≤ max_model_request_bytes, so the default 2064384 counts',
      ],
    ],
  );
});

test('B18 B46 limits are durations and caps; one at or below the ceiling of the sandbox degrades', () => {
  const read = readSettingsEnvironment({
    BEEUNI_MODEL_ACTIVITY_TIMEOUT: '1h30m',
    BEEUNI_TOOL_ACTIVITY_TIMEOUT: '15m',
    BEEUNI_IMAGE_MAX_SIDE: '800',
  });
  assert.deepEqual(read.limits, { ...COMPILED_LIMITS, model_activity_timeout: 5_400_000, image_max_side: 800 });
  assert.deepEqual(
    read.problems.map(({ name }) => name),
    ['BEEUNI_TOOL_ACTIVITY_TIMEOUT'],
  );
});

test('a duration is a number of seconds or of units, and nothing else', () => {
  assert.deepEqual(
    ['90', '90s', '16m', '500ms', '1h1m1s'].map(parseDurationMs),
    [90_000, 90_000, 960_000, 500, 3_661_000],
  );
  for (const text of ['', 'm', '1.5m', '-1s', '1 m', '1d', 's1']) assert.equal(parseDurationMs(text), undefined, text);
});

test('B12 D19 saved wins over environment over default, per knob, and the answer says what was overridden', () => {
  const { knobs } = effectiveBudgets({ keep_groups_max: 9 }, { keep_groups_max: 10 });
  assert.deepEqual(knobs.keep_groups_max, {
    value: 10,
    layer: 'saved',
    overrode: [
      { layer: 'environment', value: 9 },
      { layer: 'default', value: 8 },
    ],
  });
  assert.deepEqual(knobs.keep_groups_min, { value: 2, layer: 'default', overrode: [] });
});

test('B12 a saved value that the environment has made impossible does not count, and no effective pair breaks a rule', () => {
  const { knobs, dropped } = effectiveBudgets({ keep_groups_max: 4 }, { keep_groups_min: 6, compaction_tail_bytes: 7 });
  assert.deepEqual([knobs.keep_groups_min.value, knobs.keep_groups_max.value], [2, 4]);
  assert.equal(knobs.compaction_tail_bytes.value, 7);
  assert.deepEqual(dropped, [{ knob: 'keep_groups_min', rule: ['keep_groups_min', 'keep_groups_max'] }]);
});
