// Sends a call again where that does no harm: a read that a server could not answer now, and any call whose token was not taken,
// once, with a new one. Must not know routes. Source: A199.
import { setTimeout as wait } from 'node:timers/promises';

/** Waits before the second and the third try of a read. Units: milliseconds. Source: A199. */
const READ_WAITS_MS = [250, 500] as const;
const PASSING = [502, 503, 504];

/** What it is made from. `newToken` gives another token than the one that was refused, or undefined. */
export type RetryingFetchPorts = Readonly<{
  fetch: typeof fetch;
  newToken: () => Promise<string | undefined>;
  /** Waits; rejects when the signal fires. */
  wait?: (ms: number, signal: AbortSignal | null | undefined) => Promise<unknown>;
}>;

/** A fetch with these rules. Writes are never sent twice, but for a 401: then the first one was not taken. */
export const makeRetryingFetch = (ports: RetryingFetchPorts): typeof fetch => {
  const pause =
    ports.wait ?? ((ms, signal) => wait(ms, undefined, signal === null || signal === undefined ? {} : { signal }));
  return async (input, init = {}) => {
    const isRead = (init.method ?? 'GET') === 'GET';
    let headers = init.headers;
    let isRenewed = false;
    for (let attempt = 0; ; ) {
      const response = await ports.fetch(input, { ...init, ...(headers === undefined ? {} : { headers }) });
      if (response.status === 401 && !isRenewed) {
        isRenewed = true;
        const token = await ports.newToken();
        if (token === undefined) return response;
        headers = { ...Object.fromEntries(new Headers(headers)), authorization: `Bearer ${token}` };
      } else {
        const waitMs = READ_WAITS_MS[attempt];
        if (!isRead || waitMs === undefined || !PASSING.includes(response.status)) return response;
        attempt += 1;
        await pause(waitMs, init.signal);
      }
      await response.body?.cancel();
    }
  };
};
