// Handlers of the web routes of the sandbox listener. Must not know search engines.
import type { webImagesRoute, webScrapeRoute, webSearchRoute } from '#schema/wire/web.ts';
import { callerOf } from '../app/caller.ts';
import type { Web } from '../app/web.ts';
import type { Handler } from './handler.ts';

/** The handlers, by operationId. */
export type WebHandlers = Readonly<{
  searchWeb: Handler<typeof webSearchRoute>;
  searchWebImages: Handler<typeof webImagesRoute>;
  scrapeWebPage: Handler<typeof webScrapeRoute>;
}>;

/** Makes the handlers. */
export const makeWebHandlers = (web: Web): WebHandlers => ({
  searchWeb: async ({ caller, body, signal }) => {
    const results = await web.search(callerOf(caller, 'sandbox'), body.query, body.limit, signal);
    return { status: 200, body: { results: [...results] } };
  },
  searchWebImages: async ({ caller, body, signal }) => {
    const results = await web.searchImages(callerOf(caller, 'sandbox'), body.query, body.limit, signal);
    return { status: 200, body: { results: [...results] } };
  },
  scrapeWebPage: async ({ caller, body, signal }) => ({
    status: 200,
    body: await web.scrape(callerOf(caller, 'sandbox'), body.url, signal),
  }),
});
