// Saved workspace settings as values: what the rows say, what the whole comes to, and which rows a change writes. Pure.
// Must not know SQL, HTTP or the registry's place. Source: 40-settings B3, B22 to B25.
import { InvalidError } from '#base/errors.ts';
import type { SupervisorChange } from '#schema/rest/workspace-settings.ts';
import type { ModelNameVerdict } from '#schema/rules/check-model.ts';
import { didYouMean } from '#schema/rules/nearest-names.ts';
import { BUDGET_KNOBS, BUDGET_NAMES, BUDGET_RULES, type BudgetKnob, isBudgetKnob } from '#schema/settings/budgets.ts';
import {
  COMPILED_HAB,
  HAB_BOUNDS,
  HAB_NAMES,
  type HabCriterion,
  hasWeight,
  isHabCriterion,
} from '#schema/settings/hab.ts';
import { MODEL_ROLES, type ModelRole, NO_ROLES, ROLE_NAMES, type RoleSlots } from '#schema/settings/roles.ts';
import { budgetKey, habKey } from '#schema/settings/setting-keys.ts';
import { keepRules, mergeBudgets, type SomeBudgets } from './effective-budgets.ts';
import type { SettingProblem } from './settings-environment.ts';

/** The rows at one moment: key to JSON value, and the number of changes so far. */
export type StoredSettings = Readonly<{ revision: number; values: ReadonlyMap<string, unknown> }>;

/** One row that a change writes; null is no row. */
export type SettingWrite = Readonly<{ key: string; before: unknown; after: unknown }>;

/** What the rows say. A row that cannot be used is left out and reported. */
export type SavedSettings = Readonly<{
  roles: RoleSlots;
  hab: Readonly<Partial<Record<HabCriterion, number>>>;
  budgets: SomeBudgets;
  problems: readonly SettingProblem[];
}>;

const NO_WEIGHT_ADVICE = 'leave one above 0';

type Range = Readonly<{ least: number; most: number }>;

const isIn = (value: unknown, range: Range): value is number =>
  typeof value === 'number' && value >= range.least && value <= range.most;

const isBudgetValue = (knob: BudgetKnob, value: unknown): value is number =>
  isIn(value, BUDGET_KNOBS[knob]) && Number.isInteger(value);

/** Reads the rows. */
export const readSaved = ({ values }: StoredSettings): SavedSettings => {
  const problems: SettingProblem[] = [];
  const roles: Record<ModelRole, string> = { ...NO_ROLES };
  const hab: Partial<Record<HabCriterion, number>> = {};
  const budgets: Partial<Record<BudgetKnob, number>> = {};
  const read = <T>(key: string, isRight: (value: unknown) => value is T, use: (value: T) => void): void => {
    const value = values.get(key);
    if (value === undefined) return;
    if (isRight(value)) use(value);
    else
      problems.push({ name: key, message: 'the saved value cannot be used, so it does not count; save or reset it' });
  };
  const isText = (value: unknown): value is string => typeof value === 'string';
  const isWeight = (value: unknown): value is number => isIn(value, { least: HAB_BOUNDS.least, most: HAB_BOUNDS.most });
  for (const role of MODEL_ROLES) read(ROLE_NAMES[role].key, isText, (value) => (roles[role] = value));
  for (const name of HAB_NAMES) read(habKey(name), isWeight, (value) => (hab[name] = value));
  if (!hasWeight({ ...COMPILED_HAB, ...hab })) {
    problems.push({
      name: 'eval.hab',
      message: `the saved weights are all 0, so they do not count; ${NO_WEIGHT_ADVICE}`,
    });
    for (const name of HAB_NAMES) delete hab[name];
  }
  for (const knob of BUDGET_NAMES) {
    const isRight = (value: unknown): value is number => isBudgetValue(knob, value);
    read(budgetKey(knob), isRight, (value) => (budgets[knob] = value));
  }
  return { roles, hab, budgets, problems };
};

/** One field that is wrong. `limit` is the bound that it is beyond, where there is one. */
export type FieldProblem = Readonly<{ path: string; message: string; limit?: number | undefined }>;

const MAX_PROBLEMS = 20;
const MAX_SHOWN_NAME = 64;

const refuse = (code: 'invalid_setting' | 'unknown_setting', problems: readonly FieldProblem[]): void => {
  const [first] = problems;
  if (first === undefined) return;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  throw new InvalidError(code, `${first.path} ${first.message}${more}`, {
    details: { problems: problems.slice(0, MAX_PROBLEMS) },
  });
};

const unknownIn = (field: string, names: readonly string[], known: readonly string[]): readonly FieldProblem[] =>
  names
    .filter((name) => !known.includes(name))
    .map((name) => ({
      path: `body.${field}.${name.slice(0, MAX_SHOWN_NAME)}`,
      message: `is not known${didYouMean(name, known) || `; known are ${known.join(', ')}`}`,
    }));

const outside = (path: string, value: number, range: Range, whole: boolean): FieldProblem | undefined => {
  if (whole && !Number.isInteger(value)) return { path, message: 'must be a whole number' };
  if (value < range.least) return { path, message: `must be at least ${range.least}`, limit: range.least };
  if (value > range.most) return { path, message: `must be at most ${range.most}`, limit: range.most };
  return undefined;
};

const present = (problem: FieldProblem | undefined): readonly FieldProblem[] =>
  problem === undefined ? [] : [problem];

/** The rules between knobs that a change breaks, as far as the change names one of the two. */
const brokenPairs = (given: SomeBudgets, after: SomeBudgets, environment: SomeBudgets): readonly FieldProblem[] => {
  const merged = mergeBudgets(environment, after);
  return BUDGET_RULES.filter(([low, high]) => merged[low] > merged[high] && (low in given || high in given)).map(
    ([low, high]) =>
      low in given
        ? {
            path: `body.harness.${low}`,
            message: `would be ${merged[low]}, above ${high} (${merged[high]})`,
            limit: merged[high],
          }
        : {
            path: `body.harness.${high}`,
            message: `would be ${merged[high]}, below ${low} (${merged[low]})`,
            limit: merged[low],
          },
  );
};

type SomeWeights = Readonly<Partial<Record<HabCriterion, number>>>;

/** Refuses weights that would all be 0 with the change. */
const zeroWeights = (saved: SomeWeights, change: Readonly<Record<string, number | null>>): readonly FieldProblem[] => {
  const after: Record<HabCriterion, number> = { ...COMPILED_HAB, ...saved };
  for (const [name, value] of Object.entries(change)) {
    if (isHabCriterion(name)) after[name] = value ?? COMPILED_HAB[name];
  }
  const message = `would all be 0, so no run could have a score; ${NO_WEIGHT_ADVICE}`;
  return hasWeight(after) ? [] : [{ path: 'body.hab_coefficients', message }];
};

/** The budgets that a change leaves saved. Knobs of the change win over what is saved. */
const budgetsAfter = (saved: SomeBudgets, change: Readonly<Record<string, number | null>>): SomeBudgets => {
  const after: Partial<Record<BudgetKnob, number>> = { ...saved };
  for (const [knob, value] of Object.entries(change)) {
    if (!isBudgetKnob(knob)) continue;
    if (value === null) delete after[knob];
    else after[knob] = value;
  }
  return after;
};

/**
 * Refuses a change that may not be saved. `verdicts` judge the model names of the change. Errors: InvalidError with the
 * field and its limit: `unknown_model`, `model_disabled`, `provider_disabled`, `unknown_setting`, `invalid_setting`.
 */
export const checkChange = (
  change: SupervisorChange,
  saved: SavedSettings,
  environment: SomeBudgets,
  verdicts: ReadonlyMap<string, ModelNameVerdict>,
): void => {
  const { harness = {}, hab_coefficients: hab = {} } = change;
  const habNames = Object.keys(hab);
  const knobs = Object.keys(harness);
  refuse('unknown_setting', [
    ...unknownIn('harness', knobs, BUDGET_NAMES),
    ...unknownIn('hab_coefficients', habNames, HAB_NAMES),
  ]);
  const ofBudgets = Object.entries(harness).flatMap(([knob, value]) =>
    value === null || !isBudgetKnob(knob)
      ? []
      : present(outside(`body.harness.${knob}`, value, BUDGET_KNOBS[knob], true)),
  );
  const ofHab = Object.entries(hab).flatMap(([name, value]) =>
    value === null || !isHabCriterion(name)
      ? []
      : present(
          outside(`body.hab_coefficients.${name}`, value, { least: HAB_BOUNDS.least, most: HAB_BOUNDS.most }, false),
        ),
  );
  refuse('invalid_setting', [...ofBudgets, ...ofHab]);
  refuse('invalid_setting', zeroWeights(saved.hab, hab));
  const { kept } = keepRules(environment, saved.budgets);
  refuse('invalid_setting', brokenPairs(harness as SomeBudgets, budgetsAfter(kept, harness), environment));
  for (const role of MODEL_ROLES) {
    const { field } = ROLE_NAMES[role];
    const verdict = verdicts.get(change[field] ?? '');
    if (verdict === undefined || verdict.valid) continue;
    throw new InvalidError(verdict.code, `body.${field}: ${verdict.message}`, {
      details: { field, suggestions: verdict.suggestions },
    });
  }
};

/** The model names that a change assigns, each once. */
export const namesOfChange = (change: SupervisorChange): readonly string[] => [
  ...new Set(MODEL_ROLES.map((role) => change[ROLE_NAMES[role].field] ?? '').filter((name) => name !== '')),
];

/** The rows that a checked change writes: only those that really change. */
export const writesOfChange = (change: SupervisorChange, stored: StoredSettings): readonly SettingWrite[] => {
  const wanted = new Map<string, string | number | null>();
  for (const role of MODEL_ROLES) {
    const value = change[ROLE_NAMES[role].field];
    if (value !== undefined) wanted.set(ROLE_NAMES[role].key, value === '' ? null : value);
  }
  for (const [name, value] of Object.entries(change.hab_coefficients ?? {})) {
    if (isHabCriterion(name)) wanted.set(habKey(name), value);
  }
  for (const [knob, value] of Object.entries(change.harness ?? {})) {
    if (isBudgetKnob(knob)) wanted.set(budgetKey(knob), value);
  }
  return [...wanted]
    .map(([key, after]) => ({ key, before: stored.values.get(key) ?? null, after }))
    .filter(({ before, after }) => before !== after);
};
