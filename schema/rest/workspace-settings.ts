// The supervisor API: roles, budgets and coefficients of the workspace, and where each value comes from.
// Source: 40-settings B22 to B25, D19. Must not know how settings are kept.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { BUDGET_KNOBS, BUDGET_NAMES, type BudgetKnob } from '../settings/budgets.ts';
import { HAB_BOUNDS, HAB_CRITERIA, HAB_NAMES, type HabCriterion } from '../settings/hab.ts';
import { MODEL_ROLES } from '../settings/roles.ts';

const auth = (path: string, verb: string) => ({ kind: 'non-resource', path, verb }) as const;

const numbers = <K extends string>(names: readonly K[]) =>
  z.object(Object.fromEntries(names.map((name) => [name, z.number()])) as Record<K, z.ZodNumber>);

/** State of the embedding model. `reachable` is null without a model; `vector_size` counts numbers of one vector. */
export const embeddingStatus = z.object({
  model: z.string().nullable(),
  reachable: z.boolean().nullable(),
  last_error: z.string().nullable(),
  vector_size: z.int().min(1).nullable(),
  checked_at: z.iso.datetime().nullable(),
});

/** What does not count: `name` is an environment variable, a saved key, or `providers` where the registry is to blame. */
const settingProblem = z.object({ name: z.string(), message: z.string() });

/** The supervisor payload. Roles that nothing is assigned to are empty. Source: B22. */
export const supervisorView = z.object({
  revision: z.int().min(0).describe('number of changes so far; the ETag is this number in quotes'),
  judge_model: z.string(),
  vision_model: z.string(),
  compaction_model: z.string(),
  title_model: z.string(),
  extraction_model: z.string(),
  hab_coefficients: numbers<HabCriterion>(HAB_NAMES),
  hab_defaults: numbers<HabCriterion>(HAB_NAMES),
  hab_saved: z.array(z.string()),
  embedding: embeddingStatus,
  harness: numbers<BudgetKnob>(BUDGET_NAMES).describe('what counts now'),
  harness_defaults: numbers<BudgetKnob>(BUDGET_NAMES).describe('compiled'),
  harness_saved: z.array(z.string()).describe('knobs with a saved override'),
  problems: z.array(settingProblem).describe('values and models that do not count, and why'),
});

/**
 * A map of changes. Names and bounds are for whoever reads the document: a call is judged with the stored state, and its
 * errors name all that is wrong.
 */
const changes = (properties: Readonly<Record<string, Readonly<{ minimum: number; maximum: number }>>>) =>
  z.record(z.string(), z.number().nullable()).meta({ properties, propertyNames: { enum: Object.keys(properties) } });

const { least: minimum, most: maximum } = HAB_BOUNDS;
const habChanges = changes(
  Object.fromEntries(
    HAB_NAMES.map((name) => [name, { type: ['number', 'null'], minimum, maximum, description: HAB_CRITERIA[name] }]),
  ),
);
const budgetChanges = changes(
  Object.fromEntries(
    BUDGET_NAMES.map((name) => {
      const { least, most, unit, meaning } = BUDGET_KNOBS[name];
      const description = `${meaning} (${unit})`;
      return [name, { type: ['integer', 'null'], minimum: least, maximum: most, description }];
    }),
  ),
);

const modelField = z.string().max(256).optional();

/**
 * A change: an absent field keeps, an empty role resets; in both maps a number saves, null resets, an absent name is
 * untouched. Names and bounds are judged with the stored state. Source: B23, B24.
 */
export const supervisorChange = z.object({
  judge_model: modelField,
  vision_model: modelField,
  compaction_model: modelField,
  title_model: modelField,
  extraction_model: modelField,
  hab_coefficients: habChanges.optional(),
  harness: budgetChanges.optional(),
});

const source = z.enum(['default', 'environment', 'saved']);
const knobView = z.object({
  name: z.string(),
  key: z.string().nullable().describe('the saved key; null for what only the environment sets'),
  unit: z.enum(['bytes', 'pixels', 'milliseconds', 'groups', 'weight']),
  least: z.number(),
  most: z.number(),
  value: z.number(),
  source,
  overrode: z.array(z.object({ source, value: z.number() })),
});
const roleStep = z.enum(['slot', 'run', 'judge', 'environment']);
const roleView = z.object({
  role: z.enum(MODEL_ROLES),
  key: z.string(),
  assigned: z.string().describe('empty when nothing is assigned'),
  model: z.string().nullable().describe('what does the job outside of any run; null when it is off'),
  source: roleStep.nullable(),
  reason: z.string(),
  overrode: z.array(z.object({ source: roleStep, value: z.string(), why: z.string() })),
});

/** `GET /v1/workspace/supervisor`. */
export const getSupervisorRoute = defineRoute({
  operationId: 'getSupervisor',
  listener: 'public',
  method: 'GET',
  path: '/v1/workspace/supervisor',
  summary: 'Read roles, coefficients and budgets of the workspace',
  auth: auth('/v1/workspace/supervisor', 'get'),
  responses: { 200: supervisorView },
  etag: 'revision',
});

/**
 * `PUT /v1/workspace/supervisor`: all of it or nothing; answers what GET does. With `If-Match` only that revision is
 * changed: else 412 `precondition_failed` with the last state in `details.current`. Errors: 400 `unknown_model`,
 * `model_disabled`, `provider_disabled`, `unknown_setting`, `invalid_setting`.
 */
export const putSupervisorRoute = defineRoute({
  operationId: 'putSupervisor',
  listener: 'public',
  method: 'PUT',
  path: '/v1/workspace/supervisor',
  summary: 'Change roles, coefficients and budgets of the workspace',
  auth: auth('/v1/workspace/supervisor', 'put'),
  body: supervisorChange,
  responses: { 200: supervisorView },
  etag: 'revision',
});

/** `GET /v1/workspace/effective`: every knob and role with its value, source and what it overrode. Source: D19. */
export const getEffectiveSettingsRoute = defineRoute({
  operationId: 'getEffectiveSettings',
  listener: 'public',
  method: 'GET',
  path: '/v1/workspace/effective',
  summary: 'Where each workspace setting comes from',
  auth: auth('/v1/workspace/effective', 'get'),
  responses: {
    200: z.object({
      revision: z.int().min(0),
      knobs: z.array(knobView),
      limits: z.array(knobView),
      roles: z.array(roleView),
      problems: z.array(settingProblem),
    }),
  },
  etag: 'revision',
});

/** See supervisorView. */
export type SupervisorView = z.output<typeof supervisorView>;
/** See supervisorChange. */
export type SupervisorChange = z.output<typeof supervisorChange>;
/** See embeddingStatus. */
export type EmbeddingStatus = z.output<typeof embeddingStatus>;
/** Body of `GET /v1/workspace/effective`. */
export type EffectiveSettings = z.output<(typeof getEffectiveSettingsRoute)['responses'][200]>;
