// Model names as the workspace shows and judges them. Must not know where the registry is kept.
// Source: 20-control-plane §3, §4.
import type { ModelVerdict } from '#schema/rest/workspace.ts';
import { checkModelName } from '#schema/rules/check-model.ts';
import type { ProviderModel } from '#schema/settings/providers.ts';
import { afterKey, type Page, type PageRequest, pageFrom } from './page.ts';
import type { ReadRegistry } from './provider-ports.ts';

/** A registered model with its state. */
export type ModelListItem = ProviderModel &
  Readonly<{ name: string; provider: string; state: 'enabled' | 'retired' | 'model_disabled' | 'provider_disabled' }>;

/** The functions about models. Errors of both: UnavailableError `registry_unavailable`. */
export type ModelsApp = Readonly<{
  list: (page: PageRequest) => Promise<Page<ModelListItem>>;
  /** One verdict per name, in order. */
  validate: (names: readonly string[]) => Promise<Readonly<{ verdicts: ModelVerdict[]; registryGeneration: number }>>;
}>;

const byName = (a: ModelListItem, b: ModelListItem): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

/** Makes the functions about models. */
export const makeModelsApp = (ports: Readonly<{ readRegistry: ReadRegistry }>): ModelsApp => ({
  list: async (page) => {
    const { providers } = await ports.readRegistry();
    const after = afterKey(page);
    const items = providers
      .flatMap((provider) =>
        provider.models.map((model): ModelListItem => {
          const off = !provider.enabled ? 'provider_disabled' : model.enabled ? undefined : 'model_disabled';
          const state = off ?? (model.retired === undefined ? 'enabled' : 'retired');
          return { ...model, name: `${provider.id}/${model.id}`, provider: provider.id, state };
        }),
      )
      .sort(byName)
      .filter((item) => item.name > after);
    return pageFrom(items, page.limit, (item) => item.name);
  },
  validate: async (names) => {
    const { providers, generation } = await ports.readRegistry();
    const verdicts = names.map((name): ModelVerdict => {
      const verdict = checkModelName(name, providers);
      return verdict.valid
        ? { name, valid: true, code: null, message: null, suggestions: [] }
        : { name, valid: false, code: verdict.code, message: verdict.message, suggestions: [...verdict.suggestions] };
    });
    return { verdicts, registryGeneration: generation };
  },
});
