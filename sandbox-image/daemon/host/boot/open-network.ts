// Waits until the network of a new pod carries what it may. On some network plug-ins the first packets are dropped, and the
// system repeats a lost question for a name after 5 s and a lost SYN after 1 s (measured); asked again and again from here,
// it opens in a fraction of a second. Must not know what is sent afterwards. Source: sandbox-pod §9.
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Clock } from '#base/clock.ts';
import { connectTcp } from './connect-tcp.ts';

/** One question; whether anything at all came back within `limitMs`. */
export type Ask = (limitMs: number) => Promise<boolean>;

/** Limit of the first question; each later one waits twice as long, up to the longest. Units: milliseconds. */
const FIRST_LIMIT_MS = 100;
const LONGEST_LIMIT_MS = 800;
/** After so long the network is not what holds it up; the claim has its own words for that. Units: milliseconds. */
const WAIT_LIMIT_MS = 10_000;

/** Asks until something comes back, the limit is over or `signal` fires. Resolves true when something came back. */
export const untilAnswered = async (ask: Ask, clock: Clock, signal: AbortSignal): Promise<boolean> => {
  const end = clock.monotonicMs() + WAIT_LIMIT_MS;
  for (let limitMs = FIRST_LIMIT_MS; !signal.aborted; limitMs = Math.min(limitMs * 2, LONGEST_LIMIT_MS)) {
    if (await ask(limitMs)) return true;
    if (clock.monotonicMs() >= end) return false;
  }
  return false;
};

/** Every answer of a name server counts, also that it knows no such name. */
const askForName =
  (name: string): Ask =>
  async (timeout) => {
    try {
      await new Resolver({ timeout, tries: 1 }).resolve4(name);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== 'ETIMEOUT';
    }
  };

/** Waits until names are answered and the server of `url` answers, or refuses, connections; 10 s for each at the most. */
export const waitForNetwork = async (url: string, clock: Clock, signal: AbortSignal): Promise<void> => {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) === 0) await untilAnswered(askForName(host), clock, signal);
  const number = Number(port) || (protocol === 'https:' ? 443 : 80);
  await untilAnswered(async (limitMs) => (await connectTcp(host, number, limitMs)) !== 'silent', clock, signal);
};
