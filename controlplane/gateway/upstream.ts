// Connections to model providers: one bounded pool per provider, and no connection to an address that is not allowed.
// The address that was checked is the one that is connected to; redirects are not followed. Source: 20-control-plane §4, FF10, FC14.
// Must not know keys, models or what is sent.
import { lookup as dnsLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Pool as HttpPool, fetch as undiciFetch } from 'undici';
import { ForbiddenError, LimitError } from '#base/errors.ts';
import { checkBaseUrl, mayConnect } from '#schema/rules/provider-address.ts';
import { type Connections, makeConnections } from './connections.ts';

/** What of a provider decides about its connections. */
export type UpstreamTarget = Readonly<{
  id: string;
  generation: number;
  base_url: string;
  timeouts: Readonly<{ connect_ms: number }>;
}>;

/** One address of a name. */
export type ResolvedAddress = Readonly<{ address: string; family: 4 | 6 }>;
/** All addresses of a host name; rejects when there are none. */
export type LookupAll = (host: string) => Promise<readonly ResolvedAddress[]>;

/** A place in the pool of a provider. `path`: path of its base URL, without a slash at the end. `release` must be called once. */
export type UpstreamSlot = Readonly<{ send: Connections['send']; path: string; release: () => void }>;

/** The pools. */
export type Upstreams = Readonly<{
  /** Takes a place for one call. Errors: ForbiddenError `address_not_allowed`, LimitError `upstream_busy` when all are taken. */
  take: (target: UpstreamTarget) => UpstreamSlot;
  /** A `fetch` over the pool of the provider, without redirects. */
  fetchOf: (target: UpstreamTarget) => typeof globalThis.fetch;
  /** Ends every pool; calls in flight are cut. */
  close: () => Promise<void>;
}>;

/** The machine's own resolver, as sockets use it: hosts file and search domains included. */
export const systemLookup: LookupAll = (host) =>
  new Promise((resolve, reject) => {
    dnsLookup(host, { all: true }, (error, addresses) => {
      if (error !== null) reject(error);
      else resolve(addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 })));
    });
  });

const notAllowed = (): ForbiddenError =>
  new ForbiddenError('address_not_allowed', 'the host of the provider has no address that may be connected to');

/** Addresses of a host that may be connected to, or the error to give the socket. */
const allowedAddresses = async (
  host: string,
  lookupAll: LookupAll,
  allow: readonly string[],
): Promise<readonly ResolvedAddress[] | Error> => {
  try {
    const allowed = (await lookupAll(host)).filter(({ address }) => mayConnect(host, address, allow));
    return allowed.length > 0 ? allowed : notAllowed();
  } catch (error) {
    return error instanceof Error ? error : new Error('the host name could not be resolved', { cause: error });
  }
};

/** A lookup for sockets that gives only addresses that may be connected to. */
const checkedLookup =
  (lookupAll: LookupAll, allow: readonly string[]): LookupFunction =>
  async (host, options, callback) => {
    const found = await allowedAddresses(host, lookupAll, allow);
    const [first] = found instanceof Error ? [] : found;
    if (found instanceof Error || first === undefined) callback(found instanceof Error ? found : notAllowed(), '', 0);
    else if (options.all === true) callback(null, [...found]);
    else callback(null, first.address, first.family);
  };

type Pool = {
  readonly generation: number;
  readonly isAllowed: boolean;
  readonly connections: Connections;
  /** For the few calls that are made with a client; there from the first of them. */
  dispatcher: HttpPool | undefined;
  readonly url: URL;
  readonly connectTimeoutMs: number;
  readonly path: string;
  active: number;
};

/** Makes the pools; opens nothing before the first call. `maxConnections`: calls at once per provider. */
export const makeUpstreams = (
  settings: Readonly<{
    allowedAddresses: readonly string[];
    maxConnections: number;
    lookupAll?: LookupAll | undefined;
  }>,
): Upstreams => {
  const { maxConnections } = settings;
  const lookup = checkedLookup(settings.lookupAll ?? systemLookup, settings.allowedAddresses);
  const pools = new Map<string, Pool>();

  const poolOf = (target: UpstreamTarget): Pool => {
    const held = pools.get(target.id);
    if (held !== undefined && held.generation === target.generation) return held;
    const url = new URL(target.base_url);
    const pool: Pool = {
      generation: target.generation,
      // Literal addresses reach no lookup, so they are judged here.
      isAllowed: checkBaseUrl(target.base_url, settings.allowedAddresses).ok,
      connections: makeConnections({ url, lookup, connectTimeoutMs: target.timeouts.connect_ms }),
      dispatcher: undefined,
      url,
      connectTimeoutMs: target.timeouts.connect_ms,
      path: url.pathname.replace(/\/+$/, ''),
      active: 0,
    };
    pools.set(target.id, pool);
    // Calls in flight end on the pool that they began on.
    held?.connections.close();
    void held?.dispatcher?.close();
    return pool;
  };

  const allowedPool = (target: UpstreamTarget): Pool => {
    const pool = poolOf(target);
    if (!pool.isAllowed) throw notAllowed();
    return pool;
  };

  return {
    take: (target) => {
      const pool = allowedPool(target);
      if (pool.active >= maxConnections) {
        throw new LimitError('upstream_busy', 'all connections to the provider are in use; try again later', {
          retryAfterMs: 1_000,
        });
      }
      pool.active += 1;
      let released = false;
      return {
        send: pool.connections.send,
        path: pool.path,
        release: () => {
          if (released) return;
          released = true;
          pool.active -= 1;
        },
      };
    },
    fetchOf: (target) => {
      const pool = allowedPool(target);
      pool.dispatcher ??= new HttpPool(pool.url.origin, {
        connect: { lookup, timeout: pool.connectTimeoutMs, noDelay: true, keepAlive: true },
        connections: maxConnections,
        pipelining: 1,
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: 30_000,
      });
      const { dispatcher } = pool;
      const bound = (input: string | URL, init?: object) =>
        undiciFetch(input, { ...init, dispatcher, redirect: 'manual' });
      return bound as unknown as typeof globalThis.fetch;
    },
    close: async () => {
      for (const { connections } of pools.values()) connections.destroy();
      for (const { dispatcher } of pools.values()) await dispatcher?.destroy();
      pools.clear();
    },
  };
};
