// What the provider registry needs from outside, and the registry as the rest of the control plane reads it.
// Must not know SQL, sockets or the gateway.
import type { ProviderInput } from '#schema/settings/providers.ts';

/** Everything of a definition but id and key. */
export type ProviderDefinition = Omit<ProviderInput, 'id' | 'api_key'>;

/** A stored provider; the key is sealed. Times in RFC 3339. */
export type StoredProvider = Readonly<{
  id: string;
  definition: ProviderDefinition;
  sealedKey: Buffer | undefined;
  generation: number;
  createdAt: string;
  updatedAt: string;
}>;

/** A provider of the registry: `provider.models` and all else of the definition, with its sealed key. */
export type RegisteredProvider = ProviderDefinition &
  Readonly<{ id: string; sealedKey: Buffer | undefined; generation: number }>;

/** The registry at one moment. */
export type Registry = Readonly<{ generation: number; providers: readonly RegisteredProvider[] }>;

/** The table of providers. Errors of all: UnavailableError `database_unavailable`. */
export type ProviderStore = Readonly<{
  /** Providers after an id, by id. */
  list: (afterId: string, limit: number) => Promise<readonly StoredProvider[]>;
  find: (id: string) => Promise<StoredProvider | undefined>;
  /** Undefined when the id is taken. */
  create: (
    id: string,
    definition: ProviderDefinition,
    sealedKey: Buffer | undefined,
    at: string,
  ) => Promise<StoredProvider | undefined>;
  /** Undefined when there is none; an absent key keeps the stored one. */
  replace: (
    id: string,
    definition: ProviderDefinition,
    sealedKey: Buffer | undefined,
    at: string,
  ) => Promise<StoredProvider | undefined>;
  /** False when there was none. */
  remove: (id: string) => Promise<boolean>;
  /** Tells operators the names of the registry again. */
  announce: () => Promise<void>;
  generation: () => Promise<number>;
  /** All providers with the generation that they belong to, read together. */
  registry: () => Promise<Registry>;
}>;

/** The registry read from the database now. Errors: UnavailableError `registry_unavailable`. */
export type ReadRegistry = () => Promise<Registry>;

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
