// The budgets that count: compiled default, then environment, then saved override, per knob, and never a pair that breaks
// a rule between two knobs. Pure. Must not know where the layers come from. Source: 40-settings B12, B25, D19.
import { type Effective, effective } from '#schema/rules/effective.ts';
import {
  BUDGET_NAMES,
  BUDGET_RULES,
  type BudgetKnob,
  type Budgets,
  COMPILED_BUDGETS,
} from '#schema/settings/budgets.ts';

/** Where a value came from. */
export type SettingSource = 'default' | 'environment' | 'saved';
/** Values of some budgets. */
export type SomeBudgets = Readonly<Partial<Record<BudgetKnob, number>>>;
/** A rule between two knobs. */
export type BudgetRule = (typeof BUDGET_RULES)[number];
/** A value that does not count, and the rule that it breaks. */
export type DroppedBudget = Readonly<{ knob: BudgetKnob; rule: BudgetRule }>;

/** Defaults under the given layers, the last one on top. */
export const mergeBudgets = (...layers: readonly SomeBudgets[]): Budgets =>
  layers.reduce<Budgets>((below, layer) => ({ ...below, ...layer }), COMPILED_BUDGETS);

/** The rules that the budgets break. */
export const brokenRules = (budgets: Budgets): readonly BudgetRule[] =>
  BUDGET_RULES.filter(([low, high]) => budgets[low] > budgets[high]);

/**
 * The part of a layer that keeps every rule over the layer below it, which keeps them: both knobs of a broken pair are
 * left out, as neither says which one is wrong.
 */
export const keepRules = (
  below: SomeBudgets,
  layer: SomeBudgets,
): Readonly<{ kept: SomeBudgets; dropped: readonly DroppedBudget[] }> => {
  const kept: Partial<Record<BudgetKnob, number>> = { ...layer };
  const dropped: DroppedBudget[] = [];
  for (;;) {
    const [rule] = brokenRules(mergeBudgets(below, kept));
    const knobs = rule?.filter((knob) => kept[knob] !== undefined) ?? [];
    if (rule === undefined || knobs.length === 0) return { kept, dropped };
    for (const knob of knobs) {
      delete kept[knob];
      dropped.push({ knob, rule });
    }
  }
};

/** One budget with its source and what it overrode. */
export type EffectiveBudget = Effective<number, SettingSource>;

/** Every budget as it counts; `dropped` are saved values that the environment has made impossible. */
export const effectiveBudgets = (
  environment: SomeBudgets,
  saved: SomeBudgets,
): Readonly<{ knobs: Readonly<Record<BudgetKnob, EffectiveBudget>>; dropped: readonly DroppedBudget[] }> => {
  const { kept, dropped } = keepRules(environment, saved);
  const of = (knob: BudgetKnob): EffectiveBudget =>
    effective<number, SettingSource>([
      { layer: 'saved', value: kept[knob] },
      { layer: 'environment', value: environment[knob] },
      { layer: 'default', value: COMPILED_BUDGETS[knob] },
    ]) ?? { value: COMPILED_BUDGETS[knob], layer: 'default', overrode: [] };
  const knobs = Object.fromEntries(BUDGET_NAMES.map((knob) => [knob, of(knob)])) as Record<BudgetKnob, EffectiveBudget>;
  return { knobs, dropped };
};
