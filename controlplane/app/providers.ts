// The provider registry's rules: what may be saved, what may be deleted, and what is shown. The key is write-only.
// Must not know SQL, sockets or who calls. Source: 20-control-plane §4.
import type { Clock } from '#base/clock.ts';
import { ConflictError, InvalidError, NotFoundError } from '#base/errors.ts';
import { checkBaseUrl, mayConnect } from '#schema/rules/provider-address.ts';
import type { ProviderInput, ProviderView } from '#schema/settings/providers.ts';
import { afterKey, type Page, type PageRequest, pageFrom } from './page.ts';
import type { Seal, Unseal } from './ports.ts';
import type {
  FindProviderReferences,
  ListProviderModels,
  ProviderDefinition,
  ProviderStore,
  ResolveHost,
  StoredProvider,
} from './provider-ports.ts';

/** The context that a provider's key is sealed with. */
export const providerKeyContext = (id: string): string => `provider:${id}:api_key`;

/** Result of reaching a provider. */
export type ProviderCheck = Readonly<{ reachable: boolean; message: string | null; models: readonly string[] }>;

/** The registry's functions. Errors of all: UnavailableError `database_unavailable`. */
export type ProvidersApp = Readonly<{
  list: (page: PageRequest) => Promise<Page<ProviderView>>;
  /** Errors: NotFoundError `provider_not_found`. */
  get: (id: string) => Promise<ProviderView>;
  /** Errors: ConflictError `already_exists`, InvalidError `invalid_base_url`, `invalid_provider`. */
  create: (input: ProviderInput) => Promise<ProviderView>;
  /** Creates or replaces. Errors: as `create`, and ConflictError `provider_referenced` when names in use would stop working. */
  put: (
    id: string,
    input: Omit<ProviderInput, 'id'>,
    force: boolean,
  ) => Promise<Readonly<{ created: boolean; view: ProviderView }>>;
  /** Errors: NotFoundError `provider_not_found`, ConflictError `provider_referenced`. */
  remove: (id: string, force: boolean) => Promise<void>;
  /** Errors: NotFoundError `provider_not_found`. A provider that fails is an answer, not an error. */
  check: (id: string, signal: AbortSignal) => Promise<ProviderCheck>;
}>;

/** What the registry needs. `onChange` runs after every committed change, and its failure is the caller's to log. */
export type ProvidersPorts = Readonly<{
  store: ProviderStore;
  seal: Seal;
  unseal: Unseal;
  resolveHost: ResolveHost;
  listModels: ListProviderModels;
  findReferences: FindProviderReferences;
  onChange: () => Promise<void>;
  allowedAddresses: readonly string[];
  clock: Clock;
}>;

const viewOf = (stored: StoredProvider): ProviderView => ({
  ...stored.definition,
  id: stored.id,
  has_key: stored.sealedKey !== undefined,
  generation: stored.generation,
  created_at: stored.createdAt,
  updated_at: stored.updatedAt,
});

const duplicateOf = (names: readonly string[]): string | undefined =>
  names.find((name, at) => names.indexOf(name) !== at);

const enabledModels = (definition: ProviderDefinition): ReadonlySet<string> =>
  new Set(definition.enabled ? definition.models.filter((model) => model.enabled).map((model) => model.id) : []);

/** Largest number of references that a refusal lists. */
const SHOWN_REFERENCES = 20;

/** Makes the registry's functions. */
export const makeProvidersApp = (ports: ProvidersPorts): ProvidersApp => {
  const { store, allowedAddresses } = ports;
  const now = (): string => new Date(ports.clock.nowMs()).toISOString();

  /** The definition as it may be saved. */
  const checked = async (input: Omit<ProviderInput, 'id'>): Promise<ProviderDefinition> => {
    const { api_key: _key, ...definition } = input;
    const duplicate = duplicateOf(definition.models.map((model) => model.id));
    if (duplicate !== undefined) {
      throw new InvalidError('invalid_provider', `the model ${duplicate} is listed twice`, {
        details: { path: 'models' },
      });
    }
    const verdict = checkBaseUrl(definition.base_url, allowedAddresses);
    const refuse = (message: string): never => {
      throw new InvalidError('invalid_base_url', message, { details: { path: 'base_url' } });
    };
    if (!verdict.ok) return refuse(verdict.message);
    if (verdict.address === undefined) {
      const addresses = await ports.resolveHost(verdict.host);
      if (!addresses.every((address) => mayConnect(verdict.host, address, allowedAddresses))) {
        return refuse(
          'the host of the base URL has an address that is not public; the installation can allow its host or range',
        );
      }
    }
    return { ...definition, base_url: verdict.url };
  };

  const sealed = (id: string, key: string | undefined): Buffer | undefined =>
    key === undefined ? undefined : ports.seal(key, providerKeyContext(id));

  const found = async (id: string): Promise<StoredProvider> => {
    const stored = await store.find(id);
    if (stored === undefined) throw new NotFoundError('provider_not_found', `there is no provider ${id}`);
    return stored;
  };

  const refuseIfReferenced = async (
    id: string,
    models: ReadonlySet<string> | undefined,
    force: boolean,
  ): Promise<void> => {
    if (force) return;
    const references = await ports.findReferences(id, models);
    if (references.length === 0) return;
    throw new ConflictError(
      'provider_referenced',
      `provider ${id} is still referred to; change these first or use force: ${references.slice(0, 3).join('; ')}`,
      { details: { references: references.slice(0, SHOWN_REFERENCES), total: references.length } },
    );
  };

  const created = async (id: string, input: Omit<ProviderInput, 'id'>, definition: ProviderDefinition) => {
    const stored = await store.create(id, definition, sealed(id, input.api_key), now());
    if (stored === undefined) throw new ConflictError('already_exists', `a provider ${id} exists`);
    await ports.onChange();
    return viewOf(stored);
  };

  return {
    list: async (page) => {
      const rows = await store.list(afterKey(page), page.limit + 1);
      return pageFrom(rows.map(viewOf), page.limit, (view) => view.id);
    },
    get: async (id) => viewOf(await found(id)),
    create: async ({ id, ...input }) => created(id, input, await checked(input)),
    put: async (id, input, force) => {
      const definition = await checked(input);
      const before = await store.find(id);
      if (before === undefined) return { created: true, view: await created(id, input, definition) };
      const movesKey = new URL(before.definition.base_url).origin !== new URL(definition.base_url).origin;
      if (movesKey && before.sealedKey !== undefined && input.api_key === undefined) {
        throw new InvalidError(
          'invalid_provider',
          'another host needs api_key again: the stored key is not sent to a new host',
          {
            details: { path: 'api_key' },
          },
        );
      }
      const kept = enabledModels(definition);
      const lost = new Set([...enabledModels(before.definition)].filter((model) => !kept.has(model)));
      if (lost.size > 0) await refuseIfReferenced(id, lost, force);
      const stored = await store.replace(id, definition, sealed(id, input.api_key), now());
      if (stored === undefined) throw new NotFoundError('provider_not_found', `there is no provider ${id}`);
      await ports.onChange();
      return { created: false, view: viewOf(stored) };
    },
    remove: async (id, force) => {
      await found(id);
      await refuseIfReferenced(id, undefined, force);
      if (!(await store.remove(id))) throw new NotFoundError('provider_not_found', `there is no provider ${id}`);
      await ports.onChange();
    },
    check: async (id, signal) => {
      const stored = await found(id);
      const { sealedKey } = stored;
      const key = sealedKey === undefined ? undefined : ports.unseal(sealedKey, providerKeyContext(id));
      const provider = { ...stored.definition, id, sealedKey, generation: stored.generation };
      try {
        const models = await ports.listModels(provider, key, signal);
        return { reachable: true, message: null, models: models.slice(0, 2000) };
      } catch (error) {
        const text = error instanceof Error ? error.message : 'the provider could not be reached';
        const message = key === undefined ? text : text.replaceAll(key, '[key]');
        return { reachable: false, message: message.slice(0, 512), models: [] };
      }
    },
  };
};
