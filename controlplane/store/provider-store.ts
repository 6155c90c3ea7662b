// The table of providers as the app's port: each change and the registry's generation in one transaction.
// Must not know the rules of the registry.

import { REGISTRY_UID } from '#schema/wire/sync.ts';
import type { ProviderStore, ProviderWrite, RegisteredProvider, StoredProvider } from '../app/provider-ports.ts';
import { raiseFact } from './facts.ts';
import {
  allProviders,
  deleteKeys,
  deleteProvider,
  getProvider,
  insertKeys,
  insertProvider,
  listProviders,
  mirrorFirstKey,
  type ProviderRow,
  raiseRegistryGeneration,
  registryGeneration,
  replaceProvider,
} from './providers.ts';
import { type Database, firstRow, type Query, type Statement } from './statement.ts';

const storedOf = (row: ProviderRow): StoredProvider => ({
  id: row.id,
  definition: row.definition,
  keys: row.keys.map((key) => ({
    id: key.id,
    sealed: Buffer.from(key.sealed, 'base64'),
    lastFour: key.last_four,
    addedAt: key.added_at,
  })),
  generation: row.generation,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** A stored provider as the registry has it. */
export const registeredOf = (stored: StoredProvider): RegisteredProvider => ({
  ...stored.definition,
  id: stored.id,
  keys: stored.keys,
  generation: stored.generation,
});

/** Tells operators the names of the registry; the last thing of a transaction. */
const raiseRegistry = async (query: Query): Promise<void> => {
  const generation = (await firstRow(query, registryGeneration()))?.generation ?? 0;
  const providers = (await query(allProviders())).map(({ id, definition }) => ({
    id,
    enabled: definition.enabled,
    models: definition.models.map(({ id: model, enabled, retired }) => ({
      id: model,
      enabled,
      ...(retired === undefined ? {} : { retired: { replacement: retired.replacement } }),
    })),
  }));
  await raiseFact(query, {
    kind: 'registry',
    uid: REGISTRY_UID,
    body: { kind: 'registry', uid: REGISTRY_UID, generation, providers },
  });
};

/** The store over a database. */
export const makeProviderStore = (database: Database): ProviderStore => {
  const change = (
    id: string,
    statement: Statement<{ id: string }>,
    keys: ProviderWrite['keys'],
  ): Promise<StoredProvider | undefined> =>
    database.withTransaction(async (query: Query) => {
      await query(raiseRegistryGeneration());
      if ((await firstRow(query, statement)) === undefined) return undefined;
      if (keys !== undefined) {
        await query(deleteKeys(id));
        if (keys.length > 0) await query(insertKeys(id, keys));
        await query(mirrorFirstKey(id));
      }
      const row = await firstRow(query, getProvider(id));
      await raiseRegistry(query);
      return row === undefined ? undefined : storedOf(row);
    });
  const generationOf = async (query: Query): Promise<number> =>
    (await firstRow(query, registryGeneration()))?.generation ?? 0;
  return {
    list: async (afterId, limit) => (await database.query(listProviders(afterId, limit))).map(storedOf),
    find: async (id) => {
      const row = await firstRow(database.query, getProvider(id));
      return row === undefined ? undefined : storedOf(row);
    },
    create: (id, { definition, keys }, at) => change(id, insertProvider(id, definition, at), keys),
    replace: (id, generation, { definition, keys }, at) =>
      change(id, replaceProvider(id, generation, definition, at), keys),
    remove: (id, generation) =>
      database.withTransaction(async (query) => {
        await query(raiseRegistryGeneration());
        const isRemoved = (await firstRow(query, deleteProvider(id, generation))) !== undefined;
        await raiseRegistry(query);
        return isRemoved;
      }),
    announce: () => database.withTransaction(raiseRegistry),
    generation: () => generationOf(database.query),
    registry: () =>
      database.withTransaction(async (query) => {
        await query({ text: 'set transaction isolation level repeatable read, read only', values: [] });
        const generation = await generationOf(query);
        const rows = await query(allProviders());
        return { generation, providers: rows.map((row) => registeredOf(storedOf(row))) };
      }),
  };
};
