// Statements of the provider registry. Whoever changes a provider raises the registry's generation in the same transaction.
// Must not know what a definition means.
import type { ProviderDefinition, SealedKey } from '../app/provider-ports.ts';
import type { Statement } from './statement.ts';

/** One row with its keys; `sealed` in base64. Times in RFC 3339. */
export type ProviderRow = Readonly<{
  id: string;
  definition: ProviderDefinition;
  keys: readonly Readonly<{ id: string; sealed: string; last_four: string | null; added_at: string }>[];
  generation: number;
  created_at: string;
  updated_at: string;
}>;

const COLUMNS = `p.id, p.definition, p.generation, p.created_at, p.updated_at, coalesce(
  (select json_agg(json_build_object('id', k.id, 'sealed', encode(k.sealed, 'base64'), 'last_four', k.last_four,
      'added_at', to_char(k.added_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) order by k.position)
    from provider_keys k where k.provider_id = p.id), '[]') as keys`;

/** Providers after an id, in the order of ids. */
export const listProviders = (afterId: string, limit: number): Statement<ProviderRow> => ({
  text: `select ${COLUMNS} from providers p where p.id collate "C" > $1 order by p.id collate "C" limit $2`,
  values: [afterId, limit],
});

/** Every provider, in the order of ids. */
export const allProviders = (): Statement<ProviderRow> => ({
  text: `select ${COLUMNS} from providers p order by p.id collate "C"`,
  values: [],
});

/** One provider. */
export const getProvider = (id: string): Statement<ProviderRow> => ({
  text: `select ${COLUMNS} from providers p where p.id = $1`,
  values: [id],
});

/** Inserts a provider without keys; no row when the id is taken. */
export const insertProvider = (id: string, definition: ProviderDefinition, at: string): Statement<{ id: string }> => ({
  text: `insert into providers (id, definition, generation, created_at, updated_at) values ($1, $2, 1, $3, $3)
    on conflict (id) do nothing returning id`,
  values: [id, JSON.stringify(definition), at],
});

/** Replaces a definition; no row when there is no such provider of this generation. */
export const replaceProvider = (
  id: string,
  generation: number,
  definition: ProviderDefinition,
  at: string,
): Statement<{ id: string }> => ({
  text: `update providers set definition = $3, generation = generation + 1, updated_at = $4
    where id = $1 and generation = $2 returning id`,
  values: [id, generation, JSON.stringify(definition), at],
});

/** Removes the pool of a provider. */
export const deleteKeys = (id: string): Statement => ({
  text: 'delete from provider_keys where provider_id = $1',
  values: [id],
});

/** Inserts the pool of a provider in its order. */
export const insertKeys = (id: string, keys: readonly SealedKey[]): Statement => ({
  text: `insert into provider_keys (provider_id, id, position, sealed, last_four, added_at)
    select $1, k.id, k.position - 1, k.sealed, k.last_four, k.added_at
      from unnest($2::text[], $3::bytea[], $4::text[], $5::timestamptz[]) with ordinality
        as k(id, sealed, last_four, added_at, position)`,
  values: [
    id,
    keys.map((key) => key.id),
    keys.map((key) => key.sealed),
    keys.map((key) => key.lastFour),
    keys.map((key) => key.addedAt),
  ],
});

/** Repeats the first key where the version before looks for it. */
export const mirrorFirstKey = (id: string): Statement => ({
  text: `update providers set api_key = (select k.sealed from provider_keys k where k.provider_id = $1 order by k.position limit 1)
    where id = $1`,
  values: [id],
});

/** Deletes a provider with its keys; a row when there was one, of this generation where one is given. */
export const deleteProvider = (id: string, generation: number | undefined): Statement<{ id: string }> => ({
  text: 'delete from providers where id = $1 and ($2::bigint is null or generation = $2) returning id',
  values: [id, generation ?? null],
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
