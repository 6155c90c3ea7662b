// Statements of the provider registry. Whoever changes a provider raises the registry's generation in the same transaction.
// Must not know what a definition means.
import type { ProviderDefinition } from '../app/provider-ports.ts';
import type { Statement } from './statement.ts';

/** One row. Times in RFC 3339. */
export type ProviderRow = Readonly<{
  id: string;
  definition: ProviderDefinition;
  api_key: Buffer | null;
  generation: number;
  created_at: string;
  updated_at: string;
}>;

const COLUMNS = 'id, definition, api_key, generation, created_at, updated_at';

/** Providers after an id, in the order of ids. */
export const listProviders = (afterId: string, limit: number): Statement<ProviderRow> => ({
  text: `select ${COLUMNS} from providers where id collate "C" > $1 order by id collate "C" limit $2`,
  values: [afterId, limit],
});

/** Every provider, in the order of ids. */
export const allProviders = (): Statement<ProviderRow> => ({
  text: `select ${COLUMNS} from providers order by id collate "C"`,
  values: [],
});

/** One provider. */
export const getProvider = (id: string): Statement<ProviderRow> => ({
  text: `select ${COLUMNS} from providers where id = $1`,
  values: [id],
});

/** Inserts a provider; no row when the id is taken. */
export const insertProvider = (
  id: string,
  definition: ProviderDefinition,
  apiKey: Buffer | undefined,
  at: string,
): Statement<ProviderRow> => ({
  text: `insert into providers (${COLUMNS}) values ($1, $2, $3, 1, $4, $4)
    on conflict (id) do nothing returning ${COLUMNS}`,
  values: [id, JSON.stringify(definition), apiKey ?? null, at],
});

/** Replaces a definition; an absent key keeps the stored one. No row when there is no such provider. */
export const replaceProvider = (
  id: string,
  definition: ProviderDefinition,
  apiKey: Buffer | undefined,
  at: string,
): Statement<ProviderRow> => ({
  text: `update providers set definition = $2, api_key = coalesce($3, api_key), generation = generation + 1, updated_at = $4
    where id = $1 returning ${COLUMNS}`,
  values: [id, JSON.stringify(definition), apiKey ?? null, at],
});

/** Deletes a provider; a row when there was one. */
export const deleteProvider = (id: string): Statement<{ id: string }> => ({
  text: 'delete from providers where id = $1 returning id',
  values: [id],
});

/** The registry's generation. */
export const registryGeneration = (): Statement<{ generation: number }> => ({
  text: 'select generation from provider_registry',
  values: [],
});

/** Raises the registry's generation; the row lock makes writers of the registry wait for each other. */
export const raiseRegistryGeneration = (): Statement<{ generation: number }> => ({
  text: 'update provider_registry set generation = generation + 1 returning generation',
  values: [],
});
