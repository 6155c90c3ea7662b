// The facts of the control plane in memory, and whether it can be reached: one endless stream, followed for good.
// Must not know what facts mean; listeners get uids, never facts. Source: 10-kubernetes §6.
//
//   connecting ──(snapshot complete)──> available <──(frame)── down
//        └──────────(30 s without a frame)──────────────────────^
import { backoffMs } from '#base/backoff.ts';
import { type CancelTimer, type Clock, sleep } from '#base/clock.ts';
import { errorChain } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { Instruments } from '#base/metrics.ts';
import type { FACTS_METRICS } from '#schema/metrics.ts';
import {
  type FactsFrame,
  type ProjectFact,
  REGISTRY_UID,
  type RegistryFact,
  type SessionFact,
} from '#schema/wire/sync.ts';
import type { ControlPlane } from './control-plane.ts';

/** Without a frame for so long the control plane is down. Units: milliseconds. Source: 10-kubernetes §6. */
export const BROKEN_AFTER_MS = 30_000;
const RECONNECT = { baseMs: 250, maxMs: 5_000 };

/** What following needs. */
export type FactsPorts = Readonly<{
  open: (after: string | undefined, signal: AbortSignal) => Promise<AsyncGenerator<FactsFrame>>;
  clock: Clock;
  /** Time of the API server. Units: milliseconds since 1970. */
  serverNowMs: () => number;
  random: () => number;
  log: Logger;
  metrics: Instruments<typeof FACTS_METRICS>;
}>;

type Fact = ProjectFact | SessionFact | RegistryFact;

/** Called with the uid of an object whose fact changed, or undefined when the control plane came or went. */
export type FactsListener = (uid: string | undefined) => void;

/** The facts, followed from `start` to `stop`. */
export class Facts {
  readonly #ports: FactsPorts;
  readonly #facts = new Map<string, Fact>();
  readonly #listeners: FactsListener[] = [];
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #cancelSilence: CancelTimer = () => {};
  #state: ControlPlane['state'] = 'connecting';
  #complete = false;
  #cursor: string | undefined;
  /** Uids of the snapshot that is coming in; undefined outside of one. */
  #snapshot: Set<string> | undefined;
  #lastFrameMs: number | undefined;
  #lastContactMs: number | undefined;

  constructor(ports: FactsPorts) {
    this.#ports = ports;
  }

  /** Whether the control plane can be asked, with the time of the last contact. */
  get controlPlane(): ControlPlane {
    return { state: this.#state, lastContactMs: this.#lastContactMs };
  }

  /** The fact of a Project; undefined when there is none. */
  project(uid: string): ProjectFact | undefined {
    const fact = this.#facts.get(uid);
    return fact?.kind === 'project' ? fact : undefined;
  }

  /** The fact of a Session; undefined when there is none. */
  session(uid: string): SessionFact | undefined {
    const fact = this.#facts.get(uid);
    return fact?.kind === 'session' ? fact : undefined;
  }

  /** The names of the provider registry; undefined until the control plane told them. */
  get registry(): RegistryFact | undefined {
    const fact = this.#facts.get(REGISTRY_UID);
    return fact?.kind === 'registry' ? fact : undefined;
  }

  /** Calls back after every change. */
  subscribe(listener: FactsListener): void {
    this.#listeners.push(listener);
  }

  /** Takes the answer of a sync call as the newest fact of its Project. */
  learn(fact: ProjectFact): void {
    this.#put(fact);
  }

  /** Begins to follow. Throws TypeError when called again. */
  start(): void {
    if (this.#running !== undefined) throw new TypeError('the facts are followed already');
    this.#watchSilence(BROKEN_AFTER_MS);
    this.#running = this.#follow();
  }

  /** Resolves when the stream is closed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancelSilence();
    await this.#running;
  }

  /** Sets the gauges; for `onScrape`. */
  report(): void {
    const { metrics, clock } = this.#ports;
    metrics.factsConnected.set({}, this.#state === 'available' ? 1 : 0);
    if (this.#lastFrameMs !== undefined) {
      metrics.factsLastMessageAgeSeconds.set({}, (clock.monotonicMs() - this.#lastFrameMs) / 1_000);
    }
  }

  async #follow(): Promise<void> {
    const { open, clock, random, log } = this.#ports;
    const { signal } = this.#stop;
    for (let failures = 0; !signal.aborted; ) {
      try {
        this.#snapshot = this.#cursor === undefined ? new Set() : undefined;
        const frames = await open(this.#cursor, signal);
        for await (const frame of frames) {
          failures = 0;
          this.#take(frame);
        }
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        log.debug('the stream of facts broke', { cause: errorChain(error) });
      }
      await sleep(clock, backoffMs(RECONNECT, Math.max(1, failures), random), signal);
    }
  }

  #take(frame: FactsFrame): void {
    const { clock, serverNowMs, metrics } = this.#ports;
    this.#lastFrameMs = clock.monotonicMs();
    this.#lastContactMs = serverNowMs();
    switch (frame.type) {
      case 'reset':
        metrics.factsResetsTotal.inc({});
        this.#snapshot = new Set();
        break;
      case 'fact':
        this.#cursor = this.#snapshot === undefined ? frame.cursor : this.#cursor;
        if (frame.fact.kind === 'gone') this.#drop(frame.fact.uid);
        else {
          this.#snapshot?.add(frame.fact.uid);
          this.#put(frame.fact);
        }
        break;
      case 'snapshot-end':
        this.#endSnapshot(frame.cursor);
        break;
      case 'heartbeat':
        break;
    }
    if (this.#complete && this.#snapshot === undefined) this.#enter('available');
  }

  #endSnapshot(cursor: string): void {
    const seen = this.#snapshot;
    this.#snapshot = undefined;
    this.#cursor = cursor;
    this.#complete = true;
    if (seen !== undefined) for (const uid of this.#facts.keys()) if (!seen.has(uid)) this.#drop(uid);
  }

  #put(fact: Fact): void {
    this.#facts.set(fact.uid, fact);
    this.#tell(fact.uid);
  }

  #drop(uid: string): void {
    if (this.#facts.delete(uid)) this.#tell(uid);
  }

  #enter(state: ControlPlane['state']): void {
    if (this.#state === state) return;
    this.#ports.log.info('control plane', { state });
    this.#state = state;
    this.#tell(undefined);
  }

  /** One timer that looks at the last frame, so that a frame costs nothing. */
  #watchSilence(afterMs: number): void {
    const { clock } = this.#ports;
    const startedMs = clock.monotonicMs();
    this.#cancelSilence = clock.startTimer(afterMs, () => {
      if (this.#stop.signal.aborted) return;
      const quietMs = clock.monotonicMs() - (this.#lastFrameMs ?? startedMs - BROKEN_AFTER_MS + afterMs);
      if (quietMs >= BROKEN_AFTER_MS) this.#enter('down');
      this.#watchSilence(Math.min(BROKEN_AFTER_MS, Math.max(500, BROKEN_AFTER_MS - quietMs)));
    });
  }

  #tell(uid: string | undefined): void {
    for (const listener of this.#listeners) {
      try {
        listener(uid);
      } catch (error) {
        this.#ports.log.error('a listener of facts threw', { err: error });
      }
    }
  }
}
