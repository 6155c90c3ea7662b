// Which model does a role's job: the slot, else what stands behind it, with the reason of the choice.
// Must not know the registry; whether a model has a client is a parameter. Source: 40-settings B2, B4, B5.
import type { ModelRole, RoleSlots } from '../settings/roles.ts';

/** Where a model came from. `run`: the model of the run; `environment`: the one that the installation's environment names. */
export type RoleStep = 'slot' | 'run' | 'judge' | 'environment';

/** A step that gave no model, and why. */
export type PassedStep = Readonly<{ step: RoleStep; model: string | null; why: string }>;

/** The model of a role; null when it is off. `reason` says in one sentence why it is this one. */
export type RoleChoice = Readonly<{
  model: string | null;
  step: RoleStep | null;
  reason: string;
  passed: readonly PassedStep[];
}>;

/** What a role may be resolved to. */
export type RoleCandidates = Readonly<{
  slots: RoleSlots;
  /** Model of the run or session; null outside of one. */
  run: string | null;
  environment: string | null;
}>;

/** Steps of each role, first match wins. An empty slot of `judge` is off; one of `vision` is the main model. Source: B2, B4. */
export const ROLE_STEPS: Readonly<Record<ModelRole, readonly RoleStep[]>> = {
  judge: ['slot'],
  vision: ['slot', 'run'],
  compaction: ['slot', 'judge', 'environment'],
  title: ['slot', 'judge', 'environment'],
  extraction: ['slot', 'run', 'judge', 'environment'],
};

const EMPTY: Readonly<Record<RoleStep, string>> = {
  slot: 'nothing is assigned to the role',
  run: 'there is no run',
  judge: 'nothing is assigned to the role judge',
  environment: 'the environment names no model',
};

const CHOSEN: Readonly<Record<RoleStep, string>> = {
  slot: 'it is assigned to the role',
  run: 'it is the model of the run',
  judge: 'it is assigned to the role judge',
  environment: 'the environment names it',
};

/**
 * The model of a role. `whyUnusable` says why a name has no client for this job, undefined when it has one.
 * A step whose model has none is passed, and the choice says so.
 */
export const resolveRole = (
  role: ModelRole,
  candidates: RoleCandidates,
  whyUnusable: (name: string, role: ModelRole) => string | undefined,
): RoleChoice => {
  const { slots, run, environment } = candidates;
  const names: Readonly<Record<RoleStep, string | null>> = { slot: slots[role], run, judge: slots.judge, environment };
  const passed: PassedStep[] = [];
  for (const step of ROLE_STEPS[role]) {
    const model = names[step];
    if (model === null || model === '') {
      passed.push({ step, model: null, why: EMPTY[step] });
      continue;
    }
    const why = whyUnusable(model, role);
    if (why === undefined) return { model, step, reason: CHOSEN[step], passed };
    passed.push({ step, model, why });
  }
  const asked = passed.filter(({ model }) => model !== null);
  const why = (asked.length > 0 ? asked.slice(-1) : passed).map((step) => step.why);
  return { model: null, step: null, reason: `off: ${why.join(', ')}`, passed };
};

/**
 * The reason of a choice that was made outside of any run, which is where settings are read: a role that goes by the run
 * has another model in each. Source: B2, D19.
 */
export const reasonOutsideRuns = (role: ModelRole, { step, reason, passed }: RoleChoice): string => {
  if (!passed.some((each) => each.step === 'run')) return reason;
  const ofRun = role === 'vision' ? 'the model of the run, if it takes images' : 'the model of the run';
  return step === null ? `in a run ${ofRun}; outside of one ${reason}` : `in a run ${ofRun}; else ${reason}`;
};
