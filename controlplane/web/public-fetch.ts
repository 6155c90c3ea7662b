// Connections of the web tools: to allowed addresses only. The address that was judged is the one that is connected to, so
// a name that changes its address in between gains nothing; redirects are not followed. Source: FF10.
// Must not know what is fetched.
import { lookup as dnsLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Agent, fetch as undiciFetch } from 'undici';
import { ForbiddenError } from '#base/errors.ts';
import { checkBaseUrl, mayConnect } from '#schema/rules/provider-address.ts';
import type { FetchFor } from './ports.ts';

/** One address of a name. */
export type ResolvedAddress = Readonly<{ address: string; family: 4 | 6 }>;
/** All addresses of a host name; rejects when there are none. */
export type LookupAll = (host: string) => Promise<readonly ResolvedAddress[]>;

/** The connections. */
export type PublicFetch = Readonly<{ fetchFor: FetchFor; close: () => Promise<void> }>;

const CONNECT_LIMIT_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;

const systemLookup: LookupAll = (host) =>
  new Promise((resolve, reject) => {
    dnsLookup(host, { all: true }, (error, addresses) => {
      if (error !== null) reject(error);
      else resolve(addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 })));
    });
  });

const notAllowed = (): ForbiddenError =>
  new ForbiddenError('address_not_allowed', 'the host has no address that may be connected to');

/** Makes the connections; opens nothing before the first call. `allowedAddresses`: private hosts, addresses or ranges. */
export const makePublicFetch = (
  settings: Readonly<{
    allowedAddresses: readonly string[];
    maxConnections: number;
    lookupAll?: LookupAll | undefined;
  }>,
): PublicFetch => {
  const { allowedAddresses } = settings;
  const lookupAll = settings.lookupAll ?? systemLookup;
  const lookup: LookupFunction = (host, options, reply) => {
    const answer = (all: readonly ResolvedAddress[]): void => {
      const found = all.filter(({ address }) => mayConnect(host, address, allowedAddresses));
      const [first] = found;
      if (first === undefined) reply(notAllowed(), '', 0);
      else if (options.all === true) reply(null, [...found]);
      else reply(null, first.address, first.family);
    };
    lookupAll(host)
      .then(answer)
      .catch((error: unknown) =>
        reply(error instanceof Error ? error : new Error('the host name could not be resolved'), '', 0),
      );
  };
  const agent = new Agent({
    connect: { lookup, timeout: CONNECT_LIMIT_MS },
    connections: settings.maxConnections,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  });
  return {
    fetchFor: (url) => {
      // Literal addresses reach no lookup, so they are judged here.
      if (!checkBaseUrl(url.origin, allowedAddresses).ok) throw notAllowed();
      const bound = (input: string | URL, init?: object) =>
        undiciFetch(input, { ...init, dispatcher: agent, redirect: 'manual' });
      return bound as unknown as typeof globalThis.fetch;
    },
    close: () => agent.destroy(),
  };
};
