// The keys under which workspace settings are saved, one row each. Source: 40-settings B3, B43, B45.
// Must not know the table.
import { BUDGET_NAMES, type BudgetKnob } from './budgets.ts';
import { HAB_NAMES, type HabCriterion } from './hab.ts';
import { MODEL_ROLES, ROLE_NAMES } from './roles.ts';

/** Key of a saved budget. */
export const budgetKey = (knob: BudgetKnob): string => `harness.budgets.${knob}`;
/** Key of a saved coefficient. */
export const habKey = (criterion: HabCriterion): string => `eval.hab.${criterion}`;

/** Every key that the supervisor API saves. */
export const SETTING_KEYS: readonly string[] = [
  ...MODEL_ROLES.map((role) => ROLE_NAMES[role].key),
  ...HAB_NAMES.map(habKey),
  ...BUDGET_NAMES.map(budgetKey),
];
