// The tables of knobs, roles and coefficients against the spec's own numbers and names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BUDGET_KNOBS,
  BUDGET_NAMES,
  BUDGET_RULES,
  COMPILED_BUDGETS,
  COMPILED_LIMITS,
  PROCESS_LIMITS,
} from './budgets.ts';
import { COMPILED_HAB, HAB_BOUNDS } from './hab.ts';
import { MODEL_ROLES, ROLE_NAMES } from './roles.ts';
import { budgetsOfRun, pinnedText, runSettings } from './run-settings.ts';
import { SETTING_KEYS } from './setting-keys.ts';

test('B13 B14 B15 B16 B44 the compiled budgets are the numbers of the spec', () => {
  assert.deepEqual(COMPILED_BUDGETS, {
    max_model_request_bytes: 2_064_384,
    compaction_trigger_bytes: 1_258_291,
    compaction_card_max_bytes: 8_192,
    compaction_tail_bytes: 262_144,
    keep_groups_min: 2,
    keep_groups_max: 8,
    compaction_digest_head_bytes: 3_584,
    compaction_digest_tail_bytes: 512,
    tool_output_max_bytes: 524_288,
    tool_output_tail_bytes: 16_384,
    continue_as_new_bytes: 134_217_728,
  });
  assert.equal(COMPILED_BUDGETS.max_model_request_bytes, 2 * 1_048_576 - 32 * 1_024);
});

test('B17 B18 B44 the compiled image caps and time limits are the numbers of the spec', () => {
  assert.deepEqual(COMPILED_LIMITS, {
    image_encoded_max_bytes: 524_288,
    image_max_side: 1_568,
    image_source_max_bytes: 5_242_880,
    model_activity_timeout: 1_200_000,
    tool_activity_timeout: 960_000,
  });
  assert.ok(PROCESS_LIMITS.tool_activity_timeout.least > 15 * 60_000, 'it must exceed the ceiling of the sandbox');
});

test('B25 the bounds are those of the spec, and the compiled values keep them and the rules between knobs', () => {
  const most = Object.fromEntries(BUDGET_NAMES.map((name) => [name, BUDGET_KNOBS[name].most]));
  const mib = 1_048_576;
  assert.deepEqual([most['max_model_request_bytes'], most['continue_as_new_bytes']], [2 * mib, 512 * mib]);
  assert.deepEqual([most['keep_groups_min'], most['keep_groups_max']], [64, 64]);
  const others = BUDGET_NAMES.filter((name) => !/^(max_model|continue|keep)/.test(name));
  assert.deepEqual(new Set(others.map((name) => most[name])), new Set([64 * mib]));
  for (const name of BUDGET_NAMES) assert.ok(COMPILED_BUDGETS[name] <= BUDGET_KNOBS[name].most, name);
  for (const [low, high] of BUDGET_RULES) assert.ok(COMPILED_BUDGETS[low] <= COMPILED_BUDGETS[high]);
});

test('a budget below which a run could do nothing has a lower bound; the rest begins at 1', () => {
  const least = Object.fromEntries(BUDGET_NAMES.map((name) => [name, BUDGET_KNOBS[name].least]));
  assert.deepEqual(least, {
    max_model_request_bytes: 16_384,
    compaction_trigger_bytes: 8_192,
    compaction_card_max_bytes: 256,
    compaction_tail_bytes: 1,
    keep_groups_min: 1,
    keep_groups_max: 1,
    compaction_digest_head_bytes: 1,
    compaction_digest_tail_bytes: 1,
    tool_output_max_bytes: 1_024,
    tool_output_tail_bytes: 1,
    continue_as_new_bytes: 1_048_576,
  });
  for (const name of BUDGET_NAMES) assert.ok(COMPILED_BUDGETS[name] >= BUDGET_KNOBS[name].least, name);
});

test('B43 B46 every knob has the environment name of the spec', () => {
  assert.deepEqual(
    [...Object.values(BUDGET_KNOBS), ...Object.values(PROCESS_LIMITS)].map(({ variable }) => variable),
    [
      'MAX_MODEL_REQUEST_BYTES',
      'COMPACTION_TRIGGER_BYTES',
      'COMPACTION_CARD_MAX_BYTES',
      'COMPACTION_TAIL_BYTES',
      'COMPACTION_KEEP_GROUPS_MIN',
      'COMPACTION_KEEP_GROUPS_MAX',
      'COMPACTION_DIGEST_HEAD_BYTES',
      'COMPACTION_DIGEST_TAIL_BYTES',
      'TOOL_OUTPUT_MAX_BYTES',
      'TOOL_OUTPUT_TAIL_BYTES',
      'CONTINUE_AS_NEW_BYTES',
      'IMAGE_ENCODED_MAX_BYTES',
      'IMAGE_MAX_SIDE',
      'IMAGE_SOURCE_MAX_BYTES',
      'MODEL_ACTIVITY_TIMEOUT',
      'TOOL_ACTIVITY_TIMEOUT',
    ],
  );
});

test('B2 B45 the roles, their keys and their fields are those of the spec', () => {
  assert.deepEqual(
    MODEL_ROLES.map((role) => [ROLE_NAMES[role].key, ROLE_NAMES[role].field]),
    [
      ['eval.judge.model', 'judge_model'],
      ['supervisor.vision.model', 'vision_model'],
      ['harness.compaction.model', 'compaction_model'],
      ['harness.title.model', 'title_model'],
      ['harness.extraction.model', 'extraction_model'],
    ],
  );
  assert.equal(new Set(SETTING_KEYS).size, SETTING_KEYS.length);
  assert.ok(SETTING_KEYS.includes('harness.budgets.keep_groups_min'));
});

test('B22 every coefficient weighs alike until somebody says otherwise', () => {
  assert.deepEqual(new Set(Object.values(COMPILED_HAB)), new Set([1]));
  assert.deepEqual([HAB_BOUNDS.least, HAB_BOUNDS.most], [0, 10]);
});

test('B20 a run without a snapshot, or with zeros in it, has the compiled budgets', () => {
  assert.deepEqual(budgetsOfRun(undefined), COMPILED_BUDGETS);
  assert.deepEqual(budgetsOfRun(null), COMPILED_BUDGETS);
  const zeros = runSettings.parse({ revision: 0, hash: '0'.repeat(64), budgets: {}, roles: {} });
  assert.deepEqual(budgetsOfRun(zeros), COMPILED_BUDGETS);
  const one = { ...zeros, budgets: { ...zeros.budgets, keep_groups_max: 9 } };
  assert.deepEqual(budgetsOfRun(one), { ...COMPILED_BUDGETS, keep_groups_max: 9 });
});

test('B19 what is hashed of a snapshot changes with each value and not with their order', () => {
  const { budgets, roles } = runSettings.parse({ revision: 1, hash: '0'.repeat(64), budgets: {}, roles: {} });
  const text = pinnedText({ budgets, roles });
  const reversed = Object.fromEntries(Object.entries(budgets).reverse()) as typeof budgets;
  assert.equal(pinnedText({ budgets: reversed, roles }), text);
  assert.notEqual(pinnedText({ budgets: { ...budgets, keep_groups_min: 3 }, roles }), text);
  assert.notEqual(pinnedText({ budgets, roles: { ...roles, judge: 'a/b' } }), text);
});
