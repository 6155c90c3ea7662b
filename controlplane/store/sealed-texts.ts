// Every column that holds sealed texts, for sealing them again. A new sealed column is added here, which a test checks.
// Must not know keys or how a text is sealed.

import type { SealedText, SealedTexts } from '../app/reseal.ts';
import { KEY_ID_BYTES } from './seal.ts';
import { type Database, firstRow, type Statement } from './statement.ts';

type Place = Readonly<{
  table: string;
  column: string;
  /** Columns of the primary key, all of type text; the first one names the owner. */
  key: readonly [string, ...string[]];
}>;

/** All sealed columns of the database. */
export const SEALED_COLUMNS = [
  { table: 'provider_keys', column: 'sealed', key: ['provider_id', 'id'] },
  { table: 'providers', column: 'api_key', key: ['id'] },
  { table: 'sessions', column: 'daemon_credential', key: ['uid'] },
] as const satisfies readonly Place[];

/** What the texts of each table are bound to, by the first column of their key. */
export type SealContexts = Readonly<Record<(typeof SEALED_COLUMNS)[number]['table'], (owner: string) => string>>;

/** Texts that another key sealed. The id of the key follows the format byte. */
const olderTexts = (
  { table, column, key }: Place,
  activeKeyId: Buffer,
  after: readonly string[],
  limit: number,
): Statement<{ key: string[]; sealed: Buffer }> => {
  const columns = key.map((name) => `${name} collate "C"`).join(', ');
  const values = key.map((_name, at) => `$${at + 3}`).join(', ');
  return {
    text: `select array[${key.join(', ')}] as key, ${column} as sealed from ${table}
      where ${column} is not null and substring(${column} from 2 for ${KEY_ID_BYTES}) <> $1 and (${columns}) > (${values})
      order by ${columns} limit $2`,
    values: [activeKeyId, limit, ...key.map((_name, at) => after[at] ?? '')],
  };
};

const replaceText = ({ table, column, key }: Place, text: SealedText, sealed: Buffer): Statement<{ one: number }> => ({
  text: `update ${table} set ${column} = $1
    where ${column} = $2 and ${key.map((name, at) => `${name} = $${at + 3}`).join(' and ')} returning 1 as one`,
  values: [sealed, text.sealed, ...text.key],
});

/** The sealed texts of a database. */
export const makeSealedTexts = ({ query }: Database, activeKeyId: Buffer, contexts: SealContexts): SealedTexts => {
  const placeOf = (name: string): (typeof SEALED_COLUMNS)[number] => {
    const place = SEALED_COLUMNS.find(({ table }) => table === name);
    if (place === undefined) throw new Error(`there is no sealed column in ${name}`);
    return place;
  };
  return {
    places: SEALED_COLUMNS.map(({ table }) => table),
    older: async (name, after, limit) => {
      const place = placeOf(name);
      const rows = await query(olderTexts(place, activeKeyId, after ?? [], limit));
      return rows.map(({ key, sealed }) => ({
        place: name,
        key,
        context: contexts[place.table](key[0] ?? ''),
        sealed,
      }));
    },
    replace: async (text, sealed) =>
      (await firstRow(query, replaceText(placeOf(text.place), text, sealed))) !== undefined,
  };
};
