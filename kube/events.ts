// Notes for people as events.k8s.io/v1 Events: repeats become a series, and each object has a small allowance.
// Must not know what is noted. Writing a note never fails the caller.
import type { Clock } from '#base/clock.ts';
import { errorChain } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import { mergePatch } from './apply.ts';
import type { KubeClient } from './client.ts';
import { isNotFound } from './errors.ts';
import { microTime } from './micro-time.ts';
import { EVENTS, type ObjectRef } from './resource-types.ts';

/** The object that a note is about. */
export type Regarding = Readonly<{
  apiVersion: string;
  kind: string;
  namespace?: string | undefined;
  name: string;
  uid: string;
}>;

/** One note. `reason` is CamelCase and at most 128 characters; `action` says what was done or failed. */
export type EventNote = Readonly<{
  type: 'Normal' | 'Warning';
  reason: string;
  action: string;
  note: string;
}>;

/** Notes of one object at once, and the time after which one more is allowed. */
export const EVENT_ALLOWANCE = { burst: 25, refillMs: 300_000 } as const;
/** A note that repeats within this time joins the series of the first. Units: milliseconds. */
const SERIES_WINDOW_MS = 360_000;
const MAX_NOTE = 1_024;
const MAX_REASON = 128;
/** Objects and series that are remembered. */
const MAX_REMEMBERED = 4_096;
/** Writes in flight; above it a note is dropped, for notes are for people. */
const MAX_IN_FLIGHT = 32;

type Allowance = { left: number; atMs: number };
type Series = { ref: ObjectRef | undefined; count: number; lastMs: number; unsent: boolean };

/** What a recorder needs. `reporter` is the program, `instance` the process. */
export type EventPorts = Readonly<{
  client: KubeClient;
  clock: Clock;
  log: Logger;
  reporter: string;
  instance: string;
}>;

const forgetOldest = <K, V>(map: Map<K, V>): void => {
  if (map.size <= MAX_REMEMBERED) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
};

/** Writes notes. One per process. */
export class EventRecorder {
  readonly #ports: EventPorts;
  readonly #allowances = new Map<string, Allowance>();
  readonly #series = new Map<string, Series>();
  readonly #inFlight = new Set<Promise<void>>();
  #counter = 0;

  constructor(ports: EventPorts) {
    this.#ports = ports;
  }

  /** Writes a note, or counts it in its series, or drops it when the object's allowance is used up. Never throws. */
  note(regarding: Regarding, note: EventNote): void {
    const nowMs = this.#ports.clock.monotonicMs();
    const key = JSON.stringify([regarding.uid, note.type, note.reason, note.action, note.note]);
    const known = this.#series.get(key);
    if (known !== undefined && nowMs - known.lastMs <= SERIES_WINDOW_MS) {
      known.count += 1;
      known.lastMs = nowMs;
      known.unsent = true;
      if (known.ref !== undefined && this.#allow(regarding.uid, nowMs))
        this.#send(() => this.#extend(regarding, note, known));
      return;
    }
    if (!this.#allow(regarding.uid, nowMs)) return;
    const series: Series = { ref: undefined, count: 1, lastMs: nowMs, unsent: false };
    this.#series.delete(key);
    this.#series.set(key, series);
    forgetOldest(this.#series);
    this.#send(() => this.#create(regarding, note, series));
  }

  /** Resolves when every write in flight has ended. */
  async flush(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight);
  }

  #allow(uid: string, nowMs: number): boolean {
    const { burst, refillMs } = EVENT_ALLOWANCE;
    const allowance = this.#allowances.get(uid) ?? { left: burst, atMs: nowMs };
    const earned = Math.floor((nowMs - allowance.atMs) / refillMs);
    if (earned > 0) {
      allowance.left = Math.min(burst, allowance.left + earned);
      allowance.atMs += earned * refillMs;
    }
    this.#allowances.set(uid, allowance);
    forgetOldest(this.#allowances);
    if (allowance.left <= 0) return false;
    allowance.left -= 1;
    return true;
  }

  #send(write: () => Promise<void>): void {
    if (this.#inFlight.size >= MAX_IN_FLIGHT) return;
    const task: Promise<void> = write()
      .catch((error: unknown) => this.#ports.log.warn('an event was not written', { cause: errorChain(error) }))
      .finally(() => this.#inFlight.delete(task));
    this.#inFlight.add(task);
  }

  async #create(regarding: Regarding, note: EventNote, series: Series): Promise<void> {
    const { client, reporter, instance } = this.#ports;
    this.#counter += 1;
    const nowMs = client.serverNowMs();
    const name = `${regarding.name}.${Math.round(nowMs).toString(16)}${this.#counter.toString(16).padStart(4, '0')}`;
    const ref = { namespace: regarding.namespace ?? 'default', name };
    await client.create(
      EVENTS,
      {
        metadata: ref,
        eventTime: microTime(nowMs),
        reportingController: reporter,
        reportingInstance: instance.slice(0, MAX_REASON),
        action: note.action.slice(0, MAX_REASON),
        reason: note.reason.slice(0, MAX_REASON),
        regarding,
        note: note.note.slice(0, MAX_NOTE),
        type: note.type,
      },
      { manager: reporter },
    );
    series.ref = ref;
    // Repeats that came while the first was on its way.
    if (series.unsent) await this.#extend(regarding, note, series);
  }

  async #extend(regarding: Regarding, note: EventNote, series: Series): Promise<void> {
    const { client, reporter } = this.#ports;
    if (series.ref === undefined) return;
    series.unsent = false;
    try {
      await mergePatch(
        client,
        EVENTS,
        series.ref,
        { series: { count: series.count, lastObservedTime: microTime(client.serverNowMs()) } },
        { manager: reporter },
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // The server forgets Events after an hour.
      series.ref = undefined;
      await this.#create(regarding, note, series);
    }
  }
}
