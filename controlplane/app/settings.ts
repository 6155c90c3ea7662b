// The workspace settings: read, changed as a whole under compare-and-set, and explained. One home for every budget and role.
// Must not know SQL, HTTP or where the environment was read. Source: 40-settings B1, B12, B22 to B25, D19.
import type { Clock } from '#base/clock.ts';
import type { EffectiveSettings, SupervisorChange, SupervisorView } from '#schema/rest/workspace-settings.ts';
import { checkModelName } from '#schema/rules/check-model.ts';
import { reasonOutsideRuns } from '#schema/rules/resolve-role.ts';
import {
  BUDGET_KNOBS,
  BUDGET_NAMES,
  type Budgets,
  COMPILED_BUDGETS,
  COMPILED_LIMITS,
  LIMIT_NAMES,
  PROCESS_LIMITS,
} from '#schema/settings/budgets.ts';
import { COMPILED_HAB, HAB_BOUNDS, HAB_NAMES, type HabCoefficients } from '#schema/settings/hab.ts';
import { MODEL_ROLES, ROLE_NAMES, type RoleSlots } from '#schema/settings/roles.ts';
import { budgetKey, habKey } from '#schema/settings/setting-keys.ts';
import { type DroppedBudget, type EffectiveBudget, effectiveBudgets } from './effective-budgets.ts';
import { type Expected, isExpected, staleError } from './if-match.ts';
import type { ReadRegistry } from './provider-ports.ts';
import { resolveRoles, roleProblems } from './role-models.ts';
import {
  checkChange,
  namesOfChange,
  readSaved,
  type SavedSettings,
  type StoredSettings,
  writesOfChange,
} from './saved-settings.ts';
import type { SettingProblem, SettingsEnvironment } from './settings-environment.ts';
import type { ReadEmbeddingStatus, SettingsAuthor, SettingsStore } from './settings-ports.ts';

/** What the settings are made from. `environmentModel`: the model that the installation's environment names. */
export type SettingsPorts = Readonly<{
  store: SettingsStore;
  environment: SettingsEnvironment;
  readRegistry: ReadRegistry;
  embeddingStatus: ReadEmbeddingStatus;
  environmentModel: string | null;
  clock: Clock;
}>;

/** The settings that count at one moment. */
export type CurrentSettings = Readonly<{
  revision: number;
  budgets: Budgets;
  roles: RoleSlots;
  hab: HabCoefficients;
}>;

/** The settings' functions. Errors of all: UnavailableError `database_unavailable`. */
export type SettingsApp = Readonly<{
  view: () => Promise<SupervisorView>;
  /**
   * Changes the settings as a whole. Errors: InvalidError of checkChange, ConflictError `precondition_failed` with the
   * last state, UnavailableError `registry_unavailable`.
   */
  change: (change: SupervisorChange, expected: Expected, author: SettingsAuthor) => Promise<SupervisorView>;
  explain: () => Promise<EffectiveSettings>;
  /** What counts now, from rows that were just read. */
  currentOf: (stored: StoredSettings) => CurrentSettings;
  /** At most 2 s old while the database answers, the last known state for 10 minutes while it does not. */
  current: () => Promise<CurrentSettings>;
  /** Roles that name a provider, or one of the given models of it: one line each. */
  findReferences: (providerId: string, models?: ReadonlySet<string>) => Promise<readonly string[]>;
}>;

/** Age at which the cached settings are compared with the database. Units: milliseconds. */
const CHECK_AFTER_MS = 2_000;
/** How long cached settings serve while the database is away. Units: milliseconds. */
const GRACE_MS = 600_000;

const mapOf = <K extends string, T>(names: readonly K[], valueOf: (name: K) => T): Record<K, T> =>
  Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<K, T>;

const boundsOf = <U extends string>({ unit, least, most }: Readonly<{ unit: U; least: number; most: number }>) => ({
  unit,
  least,
  most,
});

const droppedProblem = ({ knob, rule: [low, high] }: DroppedBudget): SettingProblem => ({
  name: budgetKey(knob),
  message: `the saved value breaks ${low} ≤ ${high} with what the environment says, so it does not count`,
});

type Whole = Readonly<{
  stored: StoredSettings;
  saved: SavedSettings;
  knobs: Readonly<Record<(typeof BUDGET_NAMES)[number], EffectiveBudget>>;
  hab: HabCoefficients;
  problems: readonly SettingProblem[];
}>;

/** Makes the functions; reads nothing before the first call. */
export const makeSettingsApp = (ports: SettingsPorts): SettingsApp => {
  const { store, environment, clock } = ports;
  let held: Readonly<{ current: CurrentSettings; checkedAtMs: number }> | undefined;
  let refreshing: Promise<CurrentSettings> | undefined;

  const wholeOf = (stored: StoredSettings): Whole => {
    const saved = readSaved(stored);
    const { knobs, dropped } = effectiveBudgets(environment.budgets, saved.budgets);
    const problems = [...environment.problems, ...saved.problems, ...dropped.map(droppedProblem)];
    return { stored, saved, knobs, hab: { ...COMPILED_HAB, ...saved.hab }, problems };
  };

  const problemsOfRoles = async ({ roles }: SavedSettings): Promise<readonly SettingProblem[]> => {
    try {
      return roleProblems(roles, ports.environmentModel, await ports.readRegistry());
    } catch {
      return [{ name: 'providers', message: 'the provider registry cannot be read now, so no model was judged' }];
    }
  };

  const viewOf = async (stored: StoredSettings): Promise<SupervisorView> => {
    const { saved, knobs, hab, problems } = wholeOf(stored);
    const { roles } = saved;
    return {
      revision: stored.revision,
      judge_model: roles.judge,
      vision_model: roles.vision,
      compaction_model: roles.compaction,
      title_model: roles.title,
      extraction_model: roles.extraction,
      hab_coefficients: { ...hab },
      hab_defaults: { ...COMPILED_HAB },
      hab_saved: HAB_NAMES.filter((name) => stored.values.has(habKey(name))),
      embedding: await ports.embeddingStatus(),
      harness: mapOf(BUDGET_NAMES, (knob) => knobs[knob].value),
      harness_defaults: { ...COMPILED_BUDGETS },
      harness_saved: BUDGET_NAMES.filter((knob) => stored.values.has(budgetKey(knob))),
      problems: [...problems, ...(await problemsOfRoles(saved))],
    };
  };

  const currentOf = (stored: StoredSettings): CurrentSettings => {
    const { saved, knobs, hab } = wholeOf(stored);
    const budgets = mapOf(BUDGET_NAMES, (knob) => knobs[knob].value);
    return { revision: stored.revision, budgets, roles: saved.roles, hab };
  };

  const refresh = async (): Promise<CurrentSettings> => {
    const isSame = held !== undefined && (await store.revision()) === held.current.revision;
    const current = isSame && held !== undefined ? held.current : currentOf(await store.read());
    held = { current, checkedAtMs: clock.monotonicMs() };
    return current;
  };

  return {
    view: async () => viewOf(await store.read()),
    change: async (change, expected, author) => {
      const names = namesOfChange(change);
      const providers = names.length === 0 ? [] : (await ports.readRegistry()).providers;
      const verdicts = new Map(names.map((name) => [name, checkModelName(name, providers)]));
      let stale: StoredSettings | undefined;
      const stored = await store.change(author, (before) => {
        if (!isExpected(expected, before.revision)) {
          stale = before;
          return [];
        }
        checkChange(change, readSaved(before), environment.budgets, verdicts);
        return writesOfChange(change, before);
      });
      if (stale === undefined) return viewOf(stored);
      throw staleError('the state of the settings', await viewOf(stale));
    },
    explain: async () => {
      const { stored, saved, knobs, problems } = wholeOf(await store.read());
      const { providers } = await ports.readRegistry();
      const candidates = { slots: saved.roles, run: null, environment: ports.environmentModel };
      const choices = resolveRoles(candidates, { providers });
      const shown = ({ value, layer, overrode }: EffectiveBudget) => ({
        value,
        source: layer,
        overrode: overrode.map((each) => ({ source: each.layer, value: each.value })),
      });
      const layered = (given: number | undefined, fallback: number, layer: 'environment' | 'saved'): EffectiveBudget =>
        given === undefined
          ? { value: fallback, layer: 'default', overrode: [] }
          : { value: given, layer, overrode: [{ layer: 'default', value: fallback }] };
      return {
        revision: stored.revision,
        knobs: [
          ...BUDGET_NAMES.map((name) => ({
            name,
            key: budgetKey(name),
            ...boundsOf(BUDGET_KNOBS[name]),
            ...shown(knobs[name]),
          })),
          ...HAB_NAMES.map((name) => ({
            name,
            key: habKey(name),
            ...boundsOf({ ...HAB_BOUNDS, unit: 'weight' }),
            ...shown(layered(saved.hab[name], COMPILED_HAB[name], 'saved')),
          })),
        ],
        limits: LIMIT_NAMES.map((name) => ({
          name,
          key: null,
          ...boundsOf(PROCESS_LIMITS[name]),
          ...shown(layered(environment.givenLimits[name], COMPILED_LIMITS[name], 'environment')),
        })),
        roles: MODEL_ROLES.map((role) => {
          const choice = choices[role];
          return {
            role,
            key: ROLE_NAMES[role].key,
            assigned: saved.roles[role],
            model: choice.model,
            source: choice.step,
            reason: reasonOutsideRuns(role, choice),
            overrode: choice.passed.flatMap(({ step, model, why }) =>
              model === null ? [] : [{ source: step, value: model, why }],
            ),
          };
        }),
        problems: [...problems, ...roleProblems(saved.roles, ports.environmentModel, { providers })],
      };
    },
    currentOf,
    current: async () => {
      const ageMs = held === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() - held.checkedAtMs;
      if (held !== undefined && ageMs < CHECK_AFTER_MS) return held.current;
      refreshing ??= refresh().finally(() => {
        refreshing = undefined;
      });
      try {
        return await refreshing;
      } catch (error) {
        if (held !== undefined && ageMs < GRACE_MS) return held.current;
        throw error;
      }
    },
    findReferences: async (providerId, models) => {
      const { roles } = readSaved(await store.read());
      return MODEL_ROLES.filter((role) => {
        const name = roles[role];
        return (
          name.startsWith(`${providerId}/`) && (models === undefined || models.has(name.slice(providerId.length + 1)))
        );
      }).map((role) => `workspace setting ${ROLE_NAMES[role].key} (${roles[role]})`);
    },
  };
};
