// Reads all pages of a list and prints them as a table or as JSON. Must not know what is listed.
import type { Call, OptionSpecs } from './command.ts';
import { plainJson } from './plain-text.ts';
import { type Column, tableLines } from './table.ts';

/** One page of a list. */
export type Page<T> = Readonly<{ items: readonly T[]; cursor: string | null }>;

/** Largest page, and most pages: a list ends at 10,000 items. */
const LIMIT = 200;
const MAX_PAGES = 50;

/** All items. `fetchPage` gives the page after a cursor. */
export const readPages = async <T>(
  fetchPage: (query: Readonly<{ limit: number; cursor?: string }>) => Promise<Page<T>>,
): Promise<readonly T[]> => {
  const items: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const next: Page<T> = await fetchPage(cursor === null ? { limit: LIMIT } : { limit: LIMIT, cursor });
    items.push(...next.items);
    cursor = next.cursor;
    if (cursor === null) break;
  }
  return items;
};

type Printing = Pick<Call<OptionSpecs>, 'print' | 'note'>;

/** Prints a list: JSON as one array; a table, or on stderr that there is nothing. */
export const printList = <T>(
  call: Printing,
  json: boolean,
  items: readonly T[],
  columns: readonly Column<T>[],
  nothing: string,
): void => {
  if (json) call.print(plainJson(items, 2));
  else if (items.length === 0) call.note(nothing);
  else call.print(...tableLines(columns, items));
};
