// Which registered model does a role's job for a run: the pure resolver over a registry and a project's list of models.
// Must not know how settings or registry are read. Source: 40-settings B2, B4, B5.
import { checkModelName, isModelAllowed } from '#schema/rules/check-model.ts';
import { type RoleCandidates, type RoleChoice, resolveRole } from '#schema/rules/resolve-role.ts';
import { MODEL_ROLES, type ModelRole } from '#schema/settings/roles.ts';
import type { RegisteredProvider } from './provider-ports.ts';

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
