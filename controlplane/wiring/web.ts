// Puts the web tools' back ends together: a search engine at the address that the installation names, and the public web.
// Must not know how either works. Source: A44, A115, FF10.
import { makeRateLimit } from '../app/rate-limit.ts';
import { makeWeb } from '../app/web.ts';
import { makeWebHandlers, type WebHandlers } from '../http/web.ts';
import { makeProjectStore } from '../store/projects.ts';
import { makePublicFetch, type PublicFetch } from '../web/public-fetch.ts';
import { makeScrape } from '../web/scrape.ts';
import { makeSearxng } from '../web/searxng.ts';
import type { Background, Basics } from './basics.ts';

/** Web calls of one session: as many a second, and at once. */
const PER_SECOND = 2;
const BURST = 20;
const MAX_CONNECTIONS = 32;

/** What the web's side needs besides. */
export type WebWiring = Basics & Readonly<{ version: string }>;

/** Puts it together; nothing is connected to before the first call. */
export const wireWeb = (wiring: WebWiring): Readonly<{ handlers: WebHandlers; background: Background }> => {
  const { settings } = wiring.config;
  const searchUrl = settings.BEEUNI_WEB_SEARCH_URL;
  const projects = makeProjectStore(wiring.database);
  const pools: PublicFetch[] = [];
  const poolFor = (allowedAddresses: readonly string[]): PublicFetch => {
    const pool = makePublicFetch({ allowedAddresses, maxConnections: MAX_CONNECTIONS });
    pools.push(pool);
    return pool;
  };
  // Whoever runs the installation names the engine, so its host is allowed, and only for searches.
  const engine =
    searchUrl === undefined
      ? undefined
      : makeSearxng({
          baseUrl: searchUrl,
          fetchFor: poolFor([new URL(searchUrl).hostname.replace(/^\[|\]$/g, '')]).fetchFor,
        });
  const pages = settings.BEEUNI_WEB_SCRAPE
    ? makeScrape({
        userAgent: `Beeuni/${wiring.version}`,
        fetchFor: poolFor(settings.BEEUNI_WEB_ALLOWED_PRIVATE_HOSTS).fetchFor,
      })
    : undefined;
  const web = makeWeb({
    search: engine?.search,
    searchImages: engine?.searchImages,
    scrape: pages?.scrape,
    findConfig: async (projectUid) => (await projects.find(projectUid))?.config,
    takeCall: makeRateLimit({ clock: wiring.clock, perSecond: PER_SECOND, burst: BURST }),
    observe: (tool, result) => wiring.instruments.webCallsTotal.inc({ tool, result }),
  });
  return {
    handlers: makeWebHandlers(web),
    background: {
      name: 'connections of the web tools',
      start: () => {},
      stop: async () => {
        await Promise.all(pools.map((pool) => pool.close()));
      },
    },
  };
};
