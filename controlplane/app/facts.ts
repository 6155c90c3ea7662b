// The stream of facts: a snapshot, then every change, from any position that is still known. Must not know SQL or HTTP.
// Source: 10-kubernetes §6.
import type { Clock } from '#base/clock.ts';
import { FACTS_HEARTBEAT_INTERVAL_MS, type FactsFrame } from '#schema/wire/sync.ts';
import { type FactRow, factOf } from './session-fact.ts';
import type { Waker } from './waker.ts';

/** What the stream needs. */
export type FactsPorts = Readonly<{
  /** Identity of the stream, the version up to which it forgot things, and its newest version. */
  readStream: () => Promise<Readonly<{ epoch: string; horizon: number; head: number }>>;
  /** Facts after a version, in order. */
  readFacts: (afterVersion: number, limit: number) => Promise<readonly FactRow[]>;
  /** Woken with FACTS_KEY when any fact changed. */
  waker: Waker;
  clock: Clock;
}>;

/** Where frames go. `send` is false once the reader is gone. */
export type FactsSink = Readonly<{
  send: (frame: FactsFrame) => boolean;
  drained: () => Promise<boolean>;
  signal: AbortSignal;
}>;

/** Streams until the reader leaves. Errors: UnavailableError `database_unavailable`, which ends the stream. */
export type StreamFacts = (after: string | undefined, sink: FactsSink) => Promise<void>;

/** The one key of the waker. */
export const FACTS_KEY = 'facts';
const PAGE = 500;

/** The text of a position. */
export const cursorText = (epoch: string, version: number): string => `${epoch}.${version}`;

/** The version of a position, or undefined for one of another database, of the future, or of a forgotten past. */
export const versionOf = (
  cursor: string,
  stream: Readonly<{ epoch: string; horizon: number; head: number }>,
): number | undefined => {
  const at = cursor.lastIndexOf('.');
  const digits = cursor.slice(at + 1);
  if (cursor.slice(0, at) !== stream.epoch || !/^\d{1,15}$/.test(digits)) return undefined;
  const version = Number(digits);
  return version >= stream.horizon && version <= Math.max(stream.head, stream.horizon) ? version : undefined;
};

/** Makes the stream. */
export const makeStreamFacts =
  (ports: FactsPorts): StreamFacts =>
  async (after, sink) => {
    const { clock, waker } = ports;
    const stream = await ports.readStream();
    const known = after === undefined ? undefined : versionOf(after, stream);
    if (after !== undefined && known === undefined && !sink.send({ type: 'reset' })) return;
    let version = known ?? 0;
    let isCaughtUp = false;
    let heartbeatAt = clock.monotonicMs() + FACTS_HEARTBEAT_INTERVAL_MS;

    const sendPage = (rows: readonly FactRow[]): boolean => {
      for (const row of rows) {
        version = row.version;
        const fact = factOf(row);
        // Whoever begins knows of nothing that could be gone.
        if (fact.kind === 'gone' && known === undefined && !isCaughtUp) continue;
        if (!sink.send({ type: 'fact', cursor: cursorText(stream.epoch, version), fact })) return false;
      }
      return true;
    };

    while (!sink.signal.aborted) {
      const change = waker.begin([FACTS_KEY]);
      try {
        const rows = await ports.readFacts(version, PAGE);
        if (!sendPage(rows) || !(await sink.drained())) return;
        if (rows.length === PAGE) continue;
        if (!isCaughtUp) {
          isCaughtUp = true;
          const cursor = cursorText(stream.epoch, Math.max(version, stream.horizon));
          if (!sink.send({ type: 'snapshot-end', cursor })) return;
        }
        const leftMs = heartbeatAt - clock.monotonicMs();
        if (leftMs > 0) await change.until(leftMs, sink.signal);
        if (clock.monotonicMs() >= heartbeatAt) {
          heartbeatAt = clock.monotonicMs() + FACTS_HEARTBEAT_INTERVAL_MS;
          if (!sink.send({ type: 'heartbeat', at: new Date(clock.nowMs()).toISOString() })) return;
        }
      } finally {
        change.cancel();
      }
    }
  };
