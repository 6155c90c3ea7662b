// Reads a page of the public web as text. Every hop of a redirect is judged like the first address, so no page can lead to
// an address that is not public. Must not know who asks. Source: A44, FF10.
import { ForbiddenError, UnavailableError } from '#base/errors.ts';
import { readText, WEB_LIMIT_MS, webError } from './fetch-text.ts';
import type { FetchFor, ScrapeBackEnd } from './ports.ts';
import { readableText } from './readable-text.ts';

/** Units: bytes, unpacked. The text of a page is found on the event loop, so this bounds how long it is held. */
const MAX_PAGE_BYTES = 1_048_576;
const MAX_TEXT = 524_288;
const MAX_REDIRECTS = 5;
const MAX_ADDRESS = 2_048;
const HTML = /^(text\/html|application\/xhtml\+xml)\b/i;
const TEXT = /^(text\/|application\/(json|xml|javascript|x-yaml|yaml|[a-z0-9.+-]+\+(json|xml))\b)/i;

const notAllowed = (): ForbiddenError =>
  new ForbiddenError('address_not_allowed', 'the page is at an address that may not be connected to');

/** The address that may be tried next. Throws ForbiddenError. */
const addressOf = (text: string, base?: URL): URL => {
  if (!URL.canParse(text, base?.href)) throw notAllowed();
  const url = new URL(text, base?.href);
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  if (!isWeb || url.username !== '' || url.password !== '' || url.href.length > MAX_ADDRESS) throw notAllowed();
  url.hash = '';
  return url;
};

/** The back end that fetches pages itself. */
export const makeScrape = (settings: Readonly<{ userAgent: string; fetchFor: FetchFor }>): ScrapeBackEnd => {
  const headers = {
    'user-agent': settings.userAgent,
    accept: 'text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.1',
  };
  return {
    scrape: async (asked, signal) => {
      const limit = AbortSignal.timeout(WEB_LIMIT_MS);
      let url = addressOf(asked);
      try {
        for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
          const response = await settings.fetchFor(url)(url, { headers, signal: AbortSignal.any([limit, signal]) });
          const location = response.headers.get('location');
          if (response.status >= 300 && response.status < 400 && location !== null) {
            await response.body?.cancel();
            url = addressOf(location, url);
            continue;
          }
          const type = response.headers.get('content-type') ?? 'text/html';
          if (response.status !== 200 || !TEXT.test(type)) {
            await response.body?.cancel();
            const what =
              response.status === 200 ? `with ${type.slice(0, 80)}, which is no text` : `HTTP ${response.status}`;
            throw new UnavailableError('web_failed', `the page answered ${what}`);
          }
          const answer = await readText(response, MAX_PAGE_BYTES);
          const { title, text } = HTML.test(type) ? readableText(answer.text) : { title: '', text: answer.text };
          const isCut = answer.isCut || text.length > MAX_TEXT;
          return { url: url.href, title, text: text.slice(0, MAX_TEXT).toWellFormed(), isCut };
        }
      } catch (error) {
        throw webError(error, 'the page', limit);
      }
      throw new UnavailableError('web_failed', `the page redirects more than ${MAX_REDIRECTS} times`);
    },
  };
};
