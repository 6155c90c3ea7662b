// The back ends of the web tools as interfaces: whoever searches or reads pages fills them. Source: A44, A115.
import type { ImageResult, ScrapedPage, SearchResult } from '#schema/wire/web.ts';

/** A search engine. Errors: UnavailableError `web_failed`. */
export type SearchBackEnd = Readonly<{
  search: (query: string, limit: number, signal: AbortSignal) => Promise<readonly SearchResult[]>;
  searchImages: (query: string, limit: number, signal: AbortSignal) => Promise<readonly ImageResult[]>;
}>;

/** A reader of pages. Errors: UnavailableError `web_failed`, ForbiddenError `address_not_allowed`. */
export type ScrapeBackEnd = Readonly<{ scrape: (url: string, signal: AbortSignal) => Promise<ScrapedPage> }>;

/** A `fetch` for one address: it connects to allowed addresses only and follows no redirect. Throws ForbiddenError. */
export type FetchFor = (url: URL) => typeof globalThis.fetch;
