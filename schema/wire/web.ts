// The web tools' calls from a daemon to the control plane, which alone reaches the web. Source: A44, A52, A115.
// Must not know any search engine.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';

const address = z.url({ protocol: /^https?$/ }).max(2_048);
const line = z.string().max(512);

const searchBody = z.object({ query: z.string().min(1).max(512), limit: z.int().min(1).max(20) });

/** A page that was found; `snippet` may be empty. */
export const searchResult = z.object({ title: line, url: address, snippet: z.string().max(2_048) });
/** An image that was found, with the page that it is on. */
export const imageResult = z.object({ title: line, imageUrl: address, pageUrl: address });
/** A page as text. `url`: where redirects led to; `isCut`: there was more than is read. */
export const scrapedPage = z.object({ url: address, title: line, text: z.string().max(1_048_576), isCut: z.boolean() });

/** `POST /sandbox/v1/web/search`. Errors: 501 web_not_configured, 502 web_failed, 429 rate_limited. */
export const webSearchRoute = defineRoute({
  operationId: 'searchWeb',
  listener: 'sandbox',
  method: 'POST',
  path: '/sandbox/v1/web/search',
  summary: 'Search the web for a session',
  auth: { kind: 'sandbox' },
  body: searchBody,
  responses: { 200: z.object({ results: z.array(searchResult).max(20) }) },
});

/** `POST /sandbox/v1/web/images`. Errors: as for search. */
export const webImagesRoute = defineRoute({
  operationId: 'searchWebImages',
  listener: 'sandbox',
  method: 'POST',
  path: '/sandbox/v1/web/images',
  summary: 'Search the web for images for a session',
  auth: { kind: 'sandbox' },
  body: searchBody,
  responses: { 200: z.object({ results: z.array(imageResult).max(20) }) },
});

/** `POST /sandbox/v1/web/scrape`. Errors: as for search, and 403 address_not_allowed. */
export const webScrapeRoute = defineRoute({
  operationId: 'scrapeWebPage',
  listener: 'sandbox',
  method: 'POST',
  path: '/sandbox/v1/web/scrape',
  summary: 'Read a page of the web as text for a session',
  auth: { kind: 'sandbox' },
  body: z.object({ url: address }),
  responses: { 200: scrapedPage },
});

/** See searchResult. */
export type SearchResult = z.output<typeof searchResult>;
/** See imageResult. */
export type ImageResult = z.output<typeof imageResult>;
/** See scrapedPage. */
export type ScrapedPage = z.output<typeof scrapedPage>;
