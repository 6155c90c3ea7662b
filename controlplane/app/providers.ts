// The provider registry's rules: what may be saved, what may be deleted, and what is shown. The key is write-only.
// Must not know SQL, sockets or who calls. Source: 20-control-plane §4.
import type { Clock } from '#base/clock.ts';
import { ConflictError, InvalidError, NotFoundError } from '#base/errors.ts';
import { checkModelName } from '#schema/rules/check-model.ts';
import { blockedPortOf, checkBaseUrl, mayCarryKey, mayConnect } from '#schema/rules/provider-address.ts';
import { type ProviderInput, type ProviderView, RESERVED_PROVIDER_IDS } from '#schema/settings/providers.ts';
import { ANY_STATE, type Expected, isExpected, staleError } from './if-match.ts';
import { afterKey, type Page, type PageRequest, pageFrom } from './page.ts';
import type { Seal } from './ports.ts';
import { applyDiscovery, compareModels, type Discovery, MAX_MODELS } from './provider-discovery.ts';
import { credentialViewOf, decideCredential, sealProviderKey } from './provider-keys.ts';
import type {
  FindProviderReferences,
  ListProviderModels,
  ProviderDefinition,
  ProviderKey,
  ProviderStore,
  ReadProviderKeys,
  ResolveHost,
  StoredProvider,
} from './provider-ports.ts';

/** Result of reaching a provider. */
export type ProviderCheck = Readonly<{ reachable: boolean; message: string | null; models: readonly string[] }>;

/** Result of comparing a provider's list of models with the registry. `references`: what still names a model that is gone. */
export type ProviderDiscovery = Discovery &
  Readonly<{ reachable: boolean; message: string | null; applied: boolean; references: readonly string[] }>;

/** The registry's functions. Errors of all: UnavailableError `database_unavailable`. */
export type ProvidersApp = Readonly<{
  list: (page: PageRequest) => Promise<Page<ProviderView>>;
  /** Errors: NotFoundError `provider_not_found`. */
  get: (id: string) => Promise<ProviderView>;
  /** Errors: ConflictError `already_exists`, InvalidError `invalid_base_url`, `invalid_provider`, `unknown_model` and its kin. */
  create: (input: ProviderInput) => Promise<ProviderView>;
  /**
   * Creates or replaces. Errors: as `create`, and ConflictError `provider_referenced` when names in use would stop working,
   * `precondition_failed` with the last state when it is not the one that is expected.
   */
  put: (
    id: string,
    input: Omit<ProviderInput, 'id'>,
    force: boolean,
    expected?: Expected,
  ) => Promise<Readonly<{ created: boolean; view: ProviderView }>>;
  /** Errors: NotFoundError `provider_not_found`, ConflictError `provider_referenced`, `precondition_failed`. */
  remove: (id: string, force: boolean, expected?: Expected) => Promise<void>;
  /** Errors: NotFoundError `provider_not_found`. A provider that fails is an answer, not an error. */
  check: (id: string, signal: AbortSignal) => Promise<ProviderCheck>;
  /**
   * Compares, and changes the registry only with `apply`. Errors: NotFoundError `provider_not_found`; with `apply` also
   * ConflictError `provider_referenced` when a model in use would be retired, `conflict` when the provider changed meanwhile.
   */
  discover: (
    id: string,
    options: Readonly<{ apply: boolean; force: boolean }>,
    signal: AbortSignal,
  ) => Promise<ProviderDiscovery>;
}>;

/** What the registry needs. `onChange` runs after every committed change, and its failure is the caller's to log. */
export type ProvidersPorts = Readonly<{
  store: ProviderStore;
  seal: Seal;
  readKeys: ReadProviderKeys;
  resolveHost: ResolveHost;
  listModels: ListProviderModels;
  findReferences: FindProviderReferences;
  onChange: () => Promise<void>;
  /** Told of every answer of a provider about its models, for metrics. */
  onSync: (result: 'ok' | 'failed', providerId: string) => void;
  allowedAddresses: readonly string[];
  clock: Clock;
}>;

const viewOf = (stored: StoredProvider): ProviderView => {
  const { secret, ...definition } = stored.definition;
  return {
    ...definition,
    id: stored.id,
    has_key: stored.keys.length > 0 || secret !== undefined,
    credential: credentialViewOf(stored),
    generation: stored.generation,
    created_at: stored.createdAt,
    updated_at: stored.updatedAt,
  };
};

const duplicateOf = (names: readonly string[]): string | undefined =>
  names.find((name, at) => names.indexOf(name) !== at);

/** Models that may be called now, with whether something new may name them. */
const servedModels = (definition: ProviderDefinition): ReadonlyMap<string, 'usable' | 'retired'> =>
  new Map(
    (definition.enabled ? definition.models.filter((model) => model.enabled) : []).map((model) => [
      model.id,
      model.retired === undefined ? 'usable' : 'retired',
    ]),
  );

/** Models that are served no longer, or not as before: a retired one serves what runs, and another kind speaks another API. */
const lostModels = (before: ProviderDefinition, after: ProviderDefinition): ReadonlySet<string> => {
  const kept = before.kind === after.kind ? servedModels(after) : new Map<string, never>();
  const isLost = ([model, state]: readonly [string, string]): boolean =>
    !kept.has(model) || (state === 'usable' && kept.get(model) === 'retired');
  return new Set([...servedModels(before)].filter(isLost).map(([model]) => model));
};

const registeredOf = ({ id, definition, keys, generation }: StoredProvider) => ({
  ...definition,
  id,
  keys,
  generation,
});

/** Text without any of the keys. */
const withoutKeys = (text: string, keys: readonly ProviderKey[]): string =>
  keys.reduce((clean, { secret }) => clean.replaceAll(secret, '[key]'), text);

/** Largest number of references that a refusal lists. */
const SHOWN_REFERENCES = 20;
/** Most names that are read of a provider's list. */
const READ_LIMIT = 2_000;

/** Makes the registry's functions. */
export const makeProvidersApp = (ports: ProvidersPorts): ProvidersApp => {
  const { store, allowedAddresses } = ports;
  const now = (): string => new Date(ports.clock.nowMs()).toISOString();

  /** A fallback is a model name like any other, and has to be one after the change. */
  const checkFallback = async (id: string, definition: ProviderDefinition): Promise<void> => {
    const names = definition.fallback ?? [];
    if (names.length === 0) return;
    const others = (await store.registry()).providers.filter((provider) => provider.id !== id);
    // Switching a provider off must not fail for what it names of itself.
    const providers = [...others, { ...definition, id, enabled: true }];
    for (const [at, name] of names.entries()) {
      const verdict = checkModelName(name, providers);
      if (verdict.valid) continue;
      throw new InvalidError(verdict.code, `fallback[${at}]: ${verdict.message}`, {
        details: { path: `fallback[${at}]`, suggestions: verdict.suggestions },
      });
    }
  };

  /** The definition as it may be saved. `hasKeys`: whether calls would carry a key. */
  const checked = async (
    id: string,
    input: Omit<ProviderInput, 'id'>,
    hasKeys: boolean,
  ): Promise<ProviderDefinition> => {
    if (RESERVED_PROVIDER_IDS.includes(id)) {
      const message = `the id ${id} is reserved: ${id}/… names what the workspace settings give a role; choose another`;
      throw new InvalidError('invalid_provider', message, { details: { path: 'id' } });
    }
    const { api_key: _key, credential: _credential, ...definition } = input;
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
    const blocked = blockedPortOf(verdict.url);
    if (blocked !== undefined) {
      return refuse(
        `the base URL names port ${blocked}, which belongs to another protocol and which clients refuse; choose another`,
      );
    }
    const { host, address: own } = verdict;
    const addresses = own === undefined ? await ports.resolveHost(host) : [own];
    if (!addresses.every((address) => mayConnect(host, address, allowedAddresses))) {
      return refuse(
        'the host of the base URL has an address that is not public; the installation can allow its host or range',
      );
    }
    if (hasKeys && !verdict.isEncrypted && !mayCarryKey(host, addresses, allowedAddresses)) {
      return refuse('a key is not sent over http, where everyone on the way reads it; use https');
    }
    await checkFallback(id, definition);
    return { ...definition, base_url: verdict.url };
  };

  /** Whether calls carry a key after a change. */
  const carriesKey = ({ keys, secret }: ReturnType<typeof decideCredential>, before?: StoredProvider): boolean =>
    secret !== undefined || (keys ?? before?.keys ?? []).length > 0;

  const credentialOf = (id: string, input: Omit<ProviderInput, 'id'>, before: StoredProvider | undefined) =>
    decideCredential(input, before, { seal: sealProviderKey(ports.seal, id), at: now() });

  const found = async (id: string): Promise<StoredProvider> => {
    const stored = await store.find(id);
    if (stored === undefined) throw new NotFoundError('provider_not_found', `there is no provider ${id}`);
    return stored;
  };

  const staleProvider = async (id: string): Promise<ConflictError> => {
    const current = await store.find(id);
    return staleError(`provider ${id}`, current === undefined ? null : viewOf(current));
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

  const created = async (id: string, input: Omit<ProviderInput, 'id'>) => {
    const credential = credentialOf(id, input, undefined);
    const { keys, secret } = credential;
    const definition = await checked(id, input, carriesKey(credential));
    const stored = await store.create(id, { definition: { ...definition, secret }, keys }, now());
    if (stored === undefined) throw new ConflictError('already_exists', `a provider ${id} exists`);
    await ports.onChange();
    return viewOf(stored);
  };

  /** Stores a definition in place of the one that was read. */
  const replaced = async (
    before: StoredProvider,
    definition: ProviderDefinition,
    keys: StoredProvider['keys'] | undefined,
    force: boolean,
    expected: Expected,
  ): Promise<StoredProvider> => {
    const lost = lostModels(before.definition, definition);
    if (lost.size > 0) await refuseIfReferenced(before.id, lost, force);
    const stored = await store.replace(before.id, before.generation, { definition, keys }, now());
    if (stored === undefined) {
      if (expected.kind !== 'any') throw await staleProvider(before.id);
      throw new ConflictError(
        'conflict',
        `provider ${before.id} changed meanwhile; read it again and repeat the change`,
      );
    }
    await ports.onChange();
    return stored;
  };

  /** Asks a provider for its models. A provider that fails is an answer. */
  const reached = async (stored: StoredProvider, signal: AbortSignal): Promise<ProviderCheck> => {
    const provider = registeredOf(stored);
    let keys: readonly ProviderKey[] = [];
    try {
      keys = await ports.readKeys(provider);
      const models = await ports.listModels(provider, keys[0]?.secret, signal);
      ports.onSync('ok', stored.id);
      return { reachable: true, message: null, models: models.slice(0, READ_LIMIT) };
    } catch (error) {
      ports.onSync('failed', stored.id);
      const text = error instanceof Error ? error.message : 'the provider could not be reached';
      return { reachable: false, message: withoutKeys(text, keys).slice(0, 512), models: [] };
    }
  };

  return {
    list: async (page) => {
      const rows = await store.list(afterKey(page), page.limit + 1);
      return pageFrom(rows.map(viewOf), page.limit, (view) => view.id);
    },
    get: async (id) => viewOf(await found(id)),
    create: ({ id, ...input }) => created(id, input),
    put: async (id, input, force, expected = ANY_STATE) => {
      const before = await store.find(id);
      if (before === undefined) {
        if (expected.kind === 'revisions') throw await staleProvider(id);
        return { created: true, view: await created(id, input) };
      }
      if (!isExpected(expected, before.generation)) throw await staleProvider(id);
      const credential = credentialOf(id, input, before);
      const { keys, secret, keepsKeys } = credential;
      const definition = await checked(id, input, carriesKey(credential, before));
      const isElsewhere = new URL(before.definition.base_url).origin !== new URL(definition.base_url).origin;
      if (isElsewhere && keepsKeys) {
        throw new InvalidError(
          'invalid_provider',
          'another host needs its keys again: a stored key is not sent to a new host',
          { details: { path: input.credential === undefined ? 'api_key' : 'credential' } },
        );
      }
      const stored = await replaced(before, { ...definition, secret }, keys, force, expected);
      return { created: false, view: viewOf(stored) };
    },
    remove: async (id, force, expected = ANY_STATE) => {
      const { generation } = await found(id);
      if (!isExpected(expected, generation)) throw await staleProvider(id);
      await refuseIfReferenced(id, undefined, force);
      const isOpen = expected.kind === 'any';
      if (!(await store.remove(id, isOpen ? undefined : generation))) {
        throw isOpen ? new NotFoundError('provider_not_found', `there is no provider ${id}`) : await staleProvider(id);
      }
      await ports.onChange();
    },
    check: async (id, signal) => reached(await found(id), signal),
    discover: async (id, { apply, force }, signal) => {
      const before = await found(id);
      const { reachable, message, models } = await reached(before, signal);
      const registry = await store.registry();
      const discovery = compareModels({ id, models: before.definition.models }, models, registry.providers, READ_LIMIT);
      if (!reachable) return { ...discovery, reachable, message, applied: false, references: [] };
      const gone = new Set(discovery.retired.map((model) => model.id));
      const references = gone.size === 0 ? [] : await ports.findReferences(id, gone);
      const isNews = discovery.added.length + discovery.retired.length + discovery.restored.length > 0;
      if (apply && isNews) {
        const after = applyDiscovery(before.definition.models, discovery, now());
        await replaced(before, { ...before.definition, models: [...after] }, undefined, force, ANY_STATE);
      }
      const { leftOut } = discovery;
      const said =
        leftOut === 0
          ? message
          : `a provider has at most ${MAX_MODELS} models here; ${leftOut} of its list are left out`;
      return {
        ...discovery,
        reachable,
        message: said,
        applied: apply,
        references: references.slice(0, SHOWN_REFERENCES),
      };
    },
  };
};
