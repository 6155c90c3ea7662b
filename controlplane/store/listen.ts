// The one LISTEN connection of a replica: it reconnects for ever and says when it may have missed something.
// Must not know what is told on a channel.
import pg from 'pg';
import { type BackoffBounds, backoffMs } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { clientConfig, POOL_DEFAULTS } from './pool.ts';

/** What listening needs. */
export type ListenOptions = Readonly<{
  databaseUrl: string;
  channels: readonly string[];
  onMessage: (channel: string, payload: string) => void;
  /** Called after each connect, the first included: whatever was told before may have been missed. */
  onGap: () => void;
  onError: (error: unknown) => void;
  clock: Clock;
  random: () => number;
}>;

/** The connection's life. */
export type Listener = Readonly<{ start: () => void; stop: () => Promise<void>; isConnected: () => boolean }>;

/** A dead path is noticed by a question that stays without answer. Units: milliseconds. */
const PROBE_INTERVAL_MS = 10_000;
const PROBE_TIMEOUT_MS = 5_000;
const RECONNECT: BackoffBounds = { baseMs: 100, maxMs: 5_000 };

/** Opens nothing before `start`. */
export const makeListener = (options: ListenOptions): Listener => {
  const { clock } = options;
  const controller = new AbortController();
  let isConnected = false;
  let running: Promise<void> | undefined;

  const listenOnce = async (onConnected: () => void): Promise<void> => {
    const client = new pg.Client({
      ...clientConfig({ ...POOL_DEFAULTS, databaseUrl: options.databaseUrl, applicationName: 'beeuni-listen' }),
      query_timeout: PROBE_TIMEOUT_MS,
    });
    const broken = new AbortController();
    client.on('error', (error) => broken.abort(error));
    client.on('end', () => broken.abort(new Error('the connection ended')));
    client.on('notification', (message) => options.onMessage(message.channel, message.payload ?? ''));
    const ends = AbortSignal.any([broken.signal, controller.signal]);
    try {
      await client.connect();
      for (const channel of options.channels) await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      isConnected = true;
      onConnected();
      options.onGap();
      while (await sleep(clock, PROBE_INTERVAL_MS, ends)) await client.query('select 1');
      if (!controller.signal.aborted) throw broken.signal.reason;
    } finally {
      isConnected = false;
      void client.end().catch(() => undefined);
    }
  };

  const run = async (): Promise<void> => {
    let failures = 0;
    while (!controller.signal.aborted) {
      try {
        await listenOnce(() => {
          failures = 0;
        });
      } catch (error) {
        failures += 1;
        options.onError(error);
      }
      await sleep(clock, backoffMs(RECONNECT, failures, options.random), controller.signal);
    }
  };

  return {
    start: () => {
      running ??= run();
    },
    stop: async () => {
      controller.abort();
      await running;
    },
    isConnected: () => isConnected,
  };
};
