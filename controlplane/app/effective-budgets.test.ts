// Laws of layered budgets: whatever the layers say, what counts keeps every bound and rule, and a change is judged alike.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { InvalidError } from '#base/errors.ts';
import {
  BUDGET_KNOBS,
  BUDGET_NAMES,
  BUDGET_RULES,
  type BudgetKnob,
  COMPILED_BUDGETS,
} from '#schema/settings/budgets.ts';
import { budgetKey } from '#schema/settings/setting-keys.ts';
import { brokenRules, effectiveBudgets, keepRules, mergeBudgets, type SomeBudgets } from './effective-budgets.ts';
import { checkChange, readSaved, type StoredSettings, writesOfChange } from './saved-settings.ts';

/** Any allowed values of any knobs, small ones more often, so that rules meet. */
const layer: fc.Arbitrary<SomeBudgets> = fc
  .uniqueArray(fc.constantFrom(...BUDGET_NAMES), { maxLength: 6 })
  .chain((names) =>
    fc.record(
      Object.fromEntries(
        names.map((name) => [name, fc.integer({ min: BUDGET_KNOBS[name].least, max: BUDGET_KNOBS[name].most })]),
      ) as Record<BudgetKnob, fc.Arbitrary<number>>,
    ),
  );
const change = fc
  .uniqueArray(fc.constantFrom(...BUDGET_NAMES), { maxLength: 6 })
  .chain((names) =>
    fc.record(
      Object.fromEntries(
        names.map((name) => [
          name,
          fc.option(fc.integer({ min: BUDGET_KNOBS[name].least, max: BUDGET_KNOBS[name].most })),
        ]),
      ) as Record<string, fc.Arbitrary<number | null>>,
    ),
  );

const storedOf = (values: SomeBudgets): StoredSettings => ({
  revision: 1,
  values: new Map(Object.entries(values).map(([knob, value]) => [budgetKey(knob as BudgetKnob), value])),
});

test('B12 B25 whatever environment and saved values are, the budgets that count keep every bound and rule', () => {
  fc.assert(
    fc.property(layer, layer, (environment, saved) => {
      const { kept } = keepRules({}, environment);
      const { knobs } = effectiveBudgets(kept, saved);
      for (const name of BUDGET_NAMES) {
        const { value } = knobs[name];
        assert.ok(value >= BUDGET_KNOBS[name].least && value <= BUDGET_KNOBS[name].most);
      }
      for (const [low, high] of BUDGET_RULES) assert.ok(knobs[low].value <= knobs[high].value);
    }),
    { seed: 20261130, numRuns: 2_000 },
  );
});

test('B12 a layer without contradictions is kept whole', () => {
  fc.assert(
    fc.property(layer, (environment) => {
      fc.pre(brokenRules(mergeBudgets(environment)).length === 0);
      assert.deepEqual(keepRules({}, environment), { kept: { ...environment }, dropped: [] });
    }),
    { seed: 20261130, numRuns: 1_000 },
  );
});

test('B24 B25 a change that passes leaves rows of which all count, and an untouched knob stays as it was', () => {
  let passed = 0;
  fc.assert(
    fc.property(layer, layer, change, (environmentLayer, savedLayer, harness) => {
      const environment = keepRules({}, environmentLayer).kept;
      const before = storedOf(keepRules(environment, savedLayer).kept);
      try {
        checkChange({ harness }, readSaved(before), environment, new Map());
      } catch (error) {
        assert.ok(error instanceof InvalidError && error.code === 'invalid_setting');
        return;
      }
      passed += 1;
      const values = new Map(before.values);
      for (const { key, after } of writesOfChange({ harness }, before)) {
        if (after === null) values.delete(key);
        else values.set(key, after);
      }
      const { knobs, dropped } = effectiveBudgets(environment, readSaved({ revision: 2, values }).budgets);
      assert.deepEqual(dropped, []);
      for (const name of BUDGET_NAMES) {
        const wanted = harness[name];
        if (typeof wanted === 'number') assert.equal(knobs[name].value, wanted);
        else if (wanted === null) assert.equal(knobs[name].value, environment[name] ?? COMPILED_BUDGETS[name]);
        else assert.equal(values.get(budgetKey(name)), before.values.get(budgetKey(name)));
      }
    }),
    { seed: 20261130, numRuns: 3_000 },
  );
  assert.ok(passed > 300, `${passed} changes passed`);
});
