// The settings of one run: read once when its turn is taken, and the only ones that it uses, whatever is saved later.
// Source: 40-settings B19, B20, 70-joins J3. Must not know who issues or keeps a snapshot.
import { z } from 'zod';
import {
  BUDGET_NAMES,
  type BudgetKnob,
  type Budgets,
  COMPILED_BUDGETS,
  LIMIT_NAMES,
  type ProcessLimit,
} from './budgets.ts';
import { MODEL_ROLES, type ModelRole } from './roles.ts';

const shapeOf = <K extends string, T extends z.ZodType>(names: readonly K[], type: T) =>
  z.object(Object.fromEntries(names.map((name) => [name, type])) as Record<K, T>);

/** A budget of a snapshot; 0 stands for the compiled one. */
const pinnedBudgets = shapeOf<BudgetKnob, z.ZodDefault<z.ZodInt>>(BUDGET_NAMES, z.int().min(0).default(0));
const pinnedRoles = shapeOf<ModelRole, z.ZodDefault<z.ZodNullable<z.ZodString>>>(
  MODEL_ROLES,
  z.string().max(256).nullable().default(null),
);

/**
 * The snapshot of a run. `revision` counts changes of the workspace settings, `hash` is the SHA-256 of `pinnedText`,
 * `roles` are the models that the roles stand for in this run; null where a role is off.
 */
export const runSettings = z.object({
  revision: z.int().min(0),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  budgets: pinnedBudgets,
  roles: pinnedRoles,
});

/**
 * Image caps and time limits as they are when they are told: no part of a snapshot, so a run uses the newest ones that it
 * knows. Units: bytes, pixels, milliseconds. Source: B21, J3.
 */
export const processLimits = shapeOf<ProcessLimit, z.ZodInt>(LIMIT_NAMES, z.int().min(1));

/** See runSettings. */
export type RunSettings = z.output<typeof runSettings>;

/** What the hash of a snapshot is of: budgets and roles, each in the order of its table, as JSON. */
export const pinnedText = ({ budgets, roles }: Pick<RunSettings, 'budgets' | 'roles'>): string =>
  JSON.stringify([BUDGET_NAMES.map((name) => [name, budgets[name]]), MODEL_ROLES.map((role) => [role, roles[role]])]);

/** The budgets of a run: those of its snapshot; compiled ones without a snapshot, and where it says 0. Source: B20. */
export const budgetsOfRun = (pinned: Pick<RunSettings, 'budgets'> | null | undefined): Budgets =>
  Object.fromEntries(BUDGET_NAMES.map((name) => [name, pinned?.budgets[name] || COMPILED_BUDGETS[name]])) as Record<
    BudgetKnob,
    number
  >;
