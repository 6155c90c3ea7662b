// Searches by a SearXNG instance, whose JSON format has to be on. What it answers is not trusted: each result is checked.
// Must not know who asks. Source: A44.
import { z } from 'zod';
import { UnavailableError } from '#base/errors.ts';
import { type ImageResult, imageResult, type SearchResult, searchResult } from '#schema/wire/web.ts';
import { readText, WEB_LIMIT_MS, webError } from './fetch-text.ts';
import type { FetchFor, SearchBackEnd } from './ports.ts';

const MAX_ANSWER_BYTES = 4_194_304;

const answerShape = z.object({ results: z.array(z.looseObject({})) });
type Found = z.output<typeof answerShape>['results'][number];

const lineOf = (value: unknown, maxLength: number): string =>
  typeof value === 'string' ? value.replace(/\s+/g, ' ').trim().slice(0, maxLength) : '';

const pageOf = (found: Found): SearchResult | undefined =>
  searchResult.safeParse({
    title: lineOf(found['title'], 512),
    url: found['url'],
    snippet: lineOf(found['content'], 2_048),
  }).data;

const imageOf = (found: Found): ImageResult | undefined => {
  const source = typeof found['img_src'] === 'string' ? found['img_src'].replace(/^\/\//, 'https://') : undefined;
  return imageResult.safeParse({ title: lineOf(found['title'], 512), imageUrl: source, pageUrl: found['url'] }).data;
};

/** The back end for an instance at `baseUrl`. */
export const makeSearxng = (settings: Readonly<{ baseUrl: string; fetchFor: FetchFor }>): SearchBackEnd => {
  const ask = async (query: string, category: string, signal: AbortSignal): Promise<readonly Found[]> => {
    const url = new URL(`${settings.baseUrl.replace(/\/+$/, '')}/search`);
    url.search = new URLSearchParams({ q: query, format: 'json', categories: category }).toString();
    const limit = AbortSignal.timeout(WEB_LIMIT_MS);
    try {
      const response = await settings.fetchFor(url)(url, {
        headers: { accept: 'application/json' },
        signal: AbortSignal.any([limit, signal]),
      });
      const answer = await readText(response, MAX_ANSWER_BYTES);
      if (answer.status !== 200) {
        throw new UnavailableError('web_failed', `the search engine answered HTTP ${answer.status}`);
      }
      const parsed = answerShape.safeParse(JSON.parse(answer.text));
      if (parsed.success) return parsed.data.results;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw webError(error, 'the search engine', limit);
    }
    throw new UnavailableError('web_failed', 'the search engine did not answer with results');
  };
  const firstOf = <T>(found: readonly Found[], limit: number, of: (one: Found) => T | undefined): readonly T[] =>
    found.flatMap((one) => of(one) ?? []).slice(0, limit);
  return {
    search: async (query, limit, signal) => firstOf(await ask(query, 'general', signal), limit, pageOf),
    searchImages: async (query, limit, signal) => firstOf(await ask(query, 'images', signal), limit, imageOf),
  };
};
