// What the list of models that a provider gives means for the registry: additions, models that are gone, models that came
// back. Pure. Must not know how the list was read. Source: 20-control-plane §4.
import { type NamedProvider, usableModelNames } from '#schema/rules/check-model.ts';
import { nearestNames } from '#schema/rules/nearest-names.ts';
import { type ProviderModel, providerModel } from '#schema/settings/providers.ts';

/** What would change. `unusable`: names that the registry cannot hold; `leftOut`: those of them that it has no room for. */
export type Discovery = Readonly<{
  added: readonly string[];
  retired: readonly Readonly<{ id: string; replacement: string | null }>[];
  restored: readonly string[];
  unusable: number;
  leftOut: number;
}>;

/** Most models of one provider, as the schema has it. */
export const MAX_MODELS = 512;

/** A list as long as what is read of one may be cut, and an empty one is more often a fault than the truth. */
const isWhole = (names: readonly string[], readLimit: number): boolean => names.length > 0 && names.length < readLimit;

/**
 * Compares. Nothing is retired on a list that is empty or may be cut. A replacement is the nearest usable name, of the
 * same provider if there is one.
 */
export const compareModels = (
  provider: Readonly<{ id: string; models: readonly ProviderModel[] }>,
  upstream: readonly string[],
  registry: readonly NamedProvider[],
  readLimit: number,
): Discovery => {
  const listed = new Set(upstream);
  const known = new Set(provider.models.map(({ id }) => id));
  const news = [...listed].filter((id) => !known.has(id));
  const possible = news.filter((id) => providerModel.shape.id.safeParse(id).success).sort();
  const added = possible.slice(0, Math.max(0, MAX_MODELS - known.size));
  const gone = isWhole(upstream, readLimit) ? provider.models.filter(({ id }) => !listed.has(id)) : [];
  const goneNames = new Set(gone.map(({ id }) => `${provider.id}/${id}`));
  const usable = usableModelNames(registry).filter((name) => !goneNames.has(name));
  const own = usable.filter((name) => name.startsWith(`${provider.id}/`));
  const replacementOf = (name: string): string | null =>
    nearestNames(name, own, 1)[0] ?? nearestNames(name, usable, 1)[0] ?? own[0] ?? null;
  return {
    added,
    retired: gone
      .filter(({ retired }) => retired === undefined)
      .map(({ id }) => ({ id, replacement: replacementOf(`${provider.id}/${id}`) })),
    restored: provider.models.filter(({ id, retired }) => retired !== undefined && listed.has(id)).map(({ id }) => id),
    unusable: news.length - added.length,
    leftOut: possible.length - added.length,
  };
};

/** The models after the change. What is added is off: its prices and limits are not known yet. */
export const applyDiscovery = (
  models: readonly ProviderModel[],
  discovery: Discovery,
  at: string,
): readonly ProviderModel[] => {
  const retired = new Map(discovery.retired.map(({ id, replacement }) => [id, replacement]));
  const restored = new Set(discovery.restored);
  const kept = models.map((model): ProviderModel => {
    const replacement = retired.get(model.id);
    if (replacement !== undefined) return { ...model, retired: { since: at, replacement } };
    if (!restored.has(model.id)) return model;
    const { retired: _retired, ...back } = model;
    return back;
  });
  return [...kept, ...discovery.added.map((id) => providerModel.parse({ id, enabled: false }))];
};
