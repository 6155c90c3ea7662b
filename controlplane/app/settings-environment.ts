// Reads budgets and limits from environment variables, per knob: a value that cannot be used counts as absent and is
// reported, never fatal. Pure. Must not know where the variables came from. Source: 40-settings B12, B43, B46.
import {
  BUDGET_KNOBS,
  type BudgetKnob,
  COMPILED_LIMITS,
  ENVIRONMENT_PREFIXES,
  type Knob,
  type KnobVariable,
  PROCESS_LIMITS,
  type ProcessLimit,
  type ProcessLimits,
} from '#schema/settings/budgets.ts';
import { keepRules } from './effective-budgets.ts';

/** A value that was ignored: `name` is its environment variable or saved key. */
export type SettingProblem = Readonly<{ name: string; message: string }>;

/** What the environment says. `limits` are complete, with what decided in `givenLimits`. */
export type SettingsEnvironment = Readonly<{
  budgets: Readonly<Partial<Record<BudgetKnob, number>>>;
  givenLimits: Readonly<Partial<Record<ProcessLimit, number>>>;
  limits: ProcessLimits;
  problems: readonly SettingProblem[];
}>;

/** Texts of the variables that are set. */
export type KnobVariables = Readonly<Partial<Record<KnobVariable, string | undefined>>>;

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = /^(?:\d+(?:ms|s|m|h))+$/;

/** A duration as `20m`, `1h30m` or a number of seconds, in milliseconds; undefined for anything else. */
export const parseDurationMs = (text: string): number | undefined => {
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  if (!DURATION.test(text)) return undefined;
  return [...text.matchAll(/(\d+)(ms|s|m|h)/g)].reduce(
    (total, [, count, unit]) => total + Number(count) * (UNITS_MS[unit ?? ''] ?? 0),
    0,
  );
};

const parseKnob = (knob: Knob, text: string): number | undefined => {
  const trimmed = text.trim();
  if (knob.unit === 'milliseconds') return parseDurationMs(trimmed);
  return /^\d+$/.test(trimmed) ? Number(trimmed) : undefined;
};

const nameOf = (name: string): string => name.replaceAll('_', ' ');

/** Reads the knobs of a table; the first prefix that is set wins, also with a value that cannot be used. */
const readKnobs = <K extends string>(
  knobs: Readonly<Record<K, Knob>>,
  variables: KnobVariables,
  problems: SettingProblem[],
): { values: Partial<Record<K, number>>; from: Map<K, string> } => {
  const values: Partial<Record<K, number>> = {};
  const from = new Map<K, string>();
  for (const [key, knob] of Object.entries<Knob>(knobs)) {
    const name = key as K;
    const variable = ENVIRONMENT_PREFIXES.map((prefix) => prefix + knob.variable).find(
      (candidate) => (variables[candidate as KnobVariable] ?? '') !== '',
    );
    if (variable === undefined) continue;
    const value = parseKnob(knob, variables[variable as KnobVariable] ?? '');
    const wrong =
      value === undefined
        ? `is no ${knob.unit === 'milliseconds' ? 'duration as 20m' : 'whole number'}`
        : value < knob.least
          ? `is below ${knob.least} ${knob.unit}`
          : value > knob.most
            ? `is above ${knob.most} ${knob.unit}`
            : undefined;
    if (value !== undefined && wrong === undefined) {
      values[name] = value;
      from.set(name, variable);
    } else {
      problems.push({ name: variable, message: `${wrong}, so the default ${knob.default} of ${nameOf(key)} counts` });
    }
  }
  return { values, from };
};

/** What the variables say about budgets and limits. */
export const readSettingsEnvironment = (variables: KnobVariables): SettingsEnvironment => {
  const problems: SettingProblem[] = [];
  const budgets = readKnobs(BUDGET_KNOBS, variables, problems);
  const limits = readKnobs(PROCESS_LIMITS, variables, problems);
  const { kept, dropped } = keepRules({}, budgets.values);
  for (const { knob, rule } of dropped) {
    const message = `breaks ${rule[0]} ≤ ${rule[1]}, so the default ${BUDGET_KNOBS[knob].default} counts`;
    problems.push({ name: budgets.from.get(knob) ?? knob, message });
  }
  return {
    budgets: kept,
    givenLimits: limits.values,
    limits: { ...COMPILED_LIMITS, ...limits.values },
    problems,
  };
};
