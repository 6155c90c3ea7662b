// Which registered model does a role's job for a run: the pure resolver over a registry and a project's list of models.
// Must not know how settings or registry are read. Source: 40-settings B2, B4, B5.
import { checkModelName, isModelAllowed, NO_MODEL_TEXT, usableModelNames } from '#schema/rules/check-model.ts';
import { type RoleCandidates, type RoleChoice, resolveRole } from '#schema/rules/resolve-role.ts';
import { MODEL_ROLES, type ModelRole, ROLE_NAMES, type RoleSlots } from '#schema/settings/roles.ts';
import type { RegisteredProvider } from './provider-ports.ts';
import type { SettingProblem } from './settings-environment.ts';

/** What decides whether a model may do a role's job. `allowed`: the project's list; null or absent is all. */
export type RoleRegistry = Readonly<{
  providers: readonly RegisteredProvider[];
  allowed?: readonly string[] | null | undefined;
}>;

/** Why a model has no client for a role's job; undefined when it has one. */
export const whyUnusable =
  ({ providers, allowed }: RoleRegistry) =>
  (name: string, role: ModelRole): string | undefined => {
    const verdict = checkModelName(name, providers);
    if (!verdict.valid) return verdict.message;
    if (!isModelAllowed(name, allowed)) return `the project does not allow ${name}`;
    if (role !== 'vision') return undefined;
    const model = providers.find(({ id }) => id === verdict.provider)?.models.find(({ id }) => id === verdict.model);
    return model?.input.includes('image') === true ? undefined : `model ${name} takes no images`;
  };

/** The choice of every role. */
export const resolveRoles = (candidates: RoleCandidates, registry: RoleRegistry): Record<ModelRole, RoleChoice> => {
  const why = whyUnusable(registry);
  return Object.fromEntries(MODEL_ROLES.map((role) => [role, resolveRole(role, candidates, why)])) as Record<
    ModelRole,
    RoleChoice
  >;
};

/** What keeps models from doing their jobs: no model at all, an assigned one or that of the environment without a client. */
export const roleProblems = (
  slots: RoleSlots,
  environment: string | null,
  registry: RoleRegistry,
): readonly SettingProblem[] => {
  const why = whyUnusable(registry);
  if (usableModelNames(registry.providers).length === 0) return [{ name: 'providers', message: NO_MODEL_TEXT }];
  const assigned = MODEL_ROLES.flatMap((role) => {
    const because = slots[role] === '' ? undefined : why(slots[role], role);
    const name = ROLE_NAMES[role].key;
    return because === undefined ? [] : [{ name, message: `the role ${role} passes its model over: ${because}` }];
  });
  const because = environment === null ? undefined : why(environment, 'title');
  if (because === undefined) return assigned;
  return [...assigned, { name: 'BEEUNI_ENV_MODEL_ID', message: `roles pass this model over: ${because}` }];
};
