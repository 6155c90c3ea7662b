// What the provider registry needs from outside, and the registry as the rest of the control plane reads it.
// Must not know SQL, sockets or the gateway.
import type { ProviderInput } from '#schema/settings/providers.ts';

/** Everything of a definition but id and keys. `secret`: the Secret that holds the keys instead of the database. */
export type ProviderDefinition = Omit<ProviderInput, 'id' | 'api_key' | 'credential'> &
  Readonly<{ secret?: Readonly<{ name: string }> | undefined }>;

/** A key of a pool as it is stored. `lastFour` is null for short keys. `addedAt` in RFC 3339. */
export type SealedKey = Readonly<{ id: string; sealed: Buffer; lastFour: string | null; addedAt: string }>;

/** A stored provider; its keys are sealed, in the order of the pool. Times in RFC 3339. */
export type StoredProvider = Readonly<{
  id: string;
  definition: ProviderDefinition;
  keys: readonly SealedKey[];
  generation: number;
  createdAt: string;
  updatedAt: string;
}>;

/** A provider of the registry: `provider.models` and all else of the definition, with its sealed keys. */
export type RegisteredProvider = ProviderDefinition &
  Readonly<{ id: string; keys: readonly SealedKey[]; generation: number }>;

/** The registry at one moment. */
export type Registry = Readonly<{ generation: number; providers: readonly RegisteredProvider[] }>;

/** What is stored of a provider. Absent `keys` keep the stored ones. */
export type ProviderWrite = Readonly<{ definition: ProviderDefinition; keys: readonly SealedKey[] | undefined }>;

/** The table of providers. Errors of all: UnavailableError `database_unavailable`. */
export type ProviderStore = Readonly<{
  /** Providers after an id, by id. */
  list: (afterId: string, limit: number) => Promise<readonly StoredProvider[]>;
  find: (id: string) => Promise<StoredProvider | undefined>;
  /** Undefined when the id is taken. */
  create: (id: string, write: ProviderWrite, at: string) => Promise<StoredProvider | undefined>;
  /** Undefined when there is none of this generation. */
  replace: (id: string, generation: number, write: ProviderWrite, at: string) => Promise<StoredProvider | undefined>;
  /** False when there was none, or none of this generation where one is given. */
  remove: (id: string, generation: number | undefined) => Promise<boolean>;
  /** Tells operators the names of the registry again. */
  announce: () => Promise<void>;
  generation: () => Promise<number>;
  /** All providers with the generation that they belong to, read together. */
  registry: () => Promise<Registry>;
}>;

/** One key in clear. `id` may be shown; `secret` never. */
export type ProviderKey = Readonly<{ id: string; secret: string }>;

/**
 * The keys of a provider in the order of its pool; empty when it has none. At most 5 s old, so that a key that is taken
 * away stops. At once when they are known. Errors: UnavailableError `provider_key_unavailable` with the reason, which names no key.
 */
export type ReadProviderKeys = (
  provider: RegisteredProvider,
) => Promise<readonly ProviderKey[]> | readonly ProviderKey[];

/** The registry; at once where it is known. Errors: UnavailableError `registry_unavailable`. */
export type ReadRegistry = () => Promise<Registry> | Registry;

/** Addresses of a host name; empty when it has none. Never rejects. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

/** Asks a provider for the names of its models, with its own client. Rejects with what went wrong, without the key. */
export type ListProviderModels = (
  provider: RegisteredProvider,
  apiKey: string | undefined,
  signal: AbortSignal,
) => Promise<readonly string[]>;

/** Where in projects a provider is named: one line each, for example `project team-a/shop: spec.defaults.model`. */
export type FindProviderReferences = (providerId: string, models?: ReadonlySet<string>) => Promise<readonly string[]>;
