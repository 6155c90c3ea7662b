// Cursors of lists that are ordered by one text key. Must not know any list.
import { InvalidError } from '#base/errors.ts';

/** What a page asks for, as `pageQuery` parses it. */
export type PageRequest = Readonly<{ limit: number; cursor?: string | undefined }>;
/** One page; `cursor` is null on the last one. */
export type Page<T> = Readonly<{ items: readonly T[]; cursor: string | null }>;

/** The key after which the page begins; empty for the first. Errors: InvalidError `invalid_cursor`. */
export const afterKey = (page: PageRequest): string => {
  if (page.cursor === undefined) return '';
  const text = Buffer.from(page.cursor, 'base64url').toString('utf8');
  if (!text.startsWith('k:') || cursorOf(text.slice(2)) !== page.cursor) {
    throw new InvalidError('invalid_cursor', 'the cursor was not given by this list; leave it out to begin again');
  }
  return text.slice(2);
};

/** The cursor after a key. */
export const cursorOf = (key: string): string => Buffer.from(`k:${key}`, 'utf8').toString('base64url');

/** The page from one item more than its limit, so that the last page is known without another query. */
export const pageFrom = <T>(items: readonly T[], limit: number, keyOf: (item: T) => string): Page<T> => {
  const shown = items.slice(0, limit);
  const last = shown.at(-1);
  return { items: shown, cursor: items.length > limit && last !== undefined ? cursorOf(keyOf(last)) : null };
};
