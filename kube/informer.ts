// Lists and watches one kind for good: pages, bookmarks, resumption, silence, 410, back-off, a full list now and then.
// Handlers get keys, never objects. Must not know what the keys are for.
//
//   list ──> watch ──(closed, reset, error, silent)──> pause ──> watch from the last resource version
//    ^         └──(expired, resync)──> list
import { backoffMs, WATCH_BACKOFF } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { errorChain } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { Instruments } from '#base/metrics.ts';
import { onAbort } from '#base/on-abort.ts';
import type { KUBE_METRICS, WATCH_END_REASONS } from '#schema/metrics.ts';
import {
  Cache,
  type CacheChange,
  type CacheEntry,
  type CacheView,
  compareResourceVersions,
  type IndexOf,
  isOlderVersion,
} from './cache.ts';
import type { KubeClient, Selection } from './client.ts';
import { kubeErrorOf } from './errors.ts';
import type { OwnWrites } from './own-writes.ts';
import { type KubeObject, keyOf, type ResourceType } from './resource-types.ts';

/** Why a watch ended or a list was made again. */
export type WatchEndReason = (typeof WATCH_END_REASONS)[number];

/** What to watch and how to keep it. */
export type InformerOptions<V> = Readonly<{
  type: ResourceType;
  selection?: Selection | undefined;
  /** What is kept of an object. May throw for one that it cannot read: the entry then has a `problem`. */
  project: (object: KubeObject) => V;
  /** Custom indexes besides uid and owner. */
  indexes?: Readonly<Record<string, IndexOf<V>>> | undefined;
  /** Objects in a page; 500 when absent. */
  pageSize?: number | undefined;
}>;

/** What an informer needs. */
export type InformerPorts = Readonly<{
  client: Pick<KubeClient, 'listPages' | 'watch'>;
  clock: Clock;
  random: () => number;
  log: Logger;
  metrics: Pick<
    Instruments<typeof KUBE_METRICS>,
    | 'watchConnected'
    | 'watchLastEventAgeSeconds'
    | 'watchReconnectsTotal'
    | 'watchRelistsTotal'
    | 'watchStallsTotal'
    | 'cacheObjects'
  >;
  ownWrites?: OwnWrites | undefined;
}>;

/**
 * Silence after which a watch is replaced. Units: milliseconds. Source: C2. The server sends a bookmark about once a
 * minute, but none while the version of the kind has not moved since the watch began; then a new watch is the proof.
 */
export const SILENCE_LIMIT_MS = 90_000;
/** A full list at least this often. Units: milliseconds. C2. */
export const RELIST_INTERVAL_MS = 600_000;
/** Age of the last sign of life above which a cache is stale. Units: milliseconds. K34. */
export const STALE_AFTER_MS = 120_000;
/** Bounds of the server's own limit of a watch. Units: seconds. C8. */
const WATCH_SECONDS = { least: 300, most: 600 };
/** Least time between two connects; doubles while nothing arrives. Units: milliseconds. C6. */
const CONNECT_GAP = { leastMs: 1_000, mostMs: 8_000 };
/** More lists than this in a minute are worth a warning. C4. */
const LISTS_PER_MINUTE = 3;
/** A list older than what was seen is refused this many times in a row; then the store was restored. */
const STALE_LISTS = 2;

type Subscriber<V> = Readonly<{ keysOf: (entry: CacheEntry<V>) => Iterable<string>; handler: (key: string) => void }>;

/** A cache of one kind that follows the API server. Started once; to start again, make another (C11). */
export class Informer<V> {
  readonly #options: InformerOptions<V>;
  readonly #ports: InformerPorts;
  readonly #cache: Cache<V>;
  readonly #subscribers: Subscriber<V>[] = [];
  readonly #stop = new AbortController();
  readonly #whenSynced = Promise.withResolvers<boolean>();
  #running: Promise<void> | undefined;
  #synced = false;
  #resourceVersion: string | undefined;
  #lastSignMs = Number.NEGATIVE_INFINITY;
  #relistAtMs = 0;
  #listReason: WatchEndReason | undefined;
  #staleLists = 0;
  #listTimesMs: number[] = [];

  constructor(options: InformerOptions<V>, ports: InformerPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#cache = new Cache(options.project, options.indexes);
  }

  /** The cached objects. */
  get cache(): CacheView<V> {
    return this.#cache.view;
  }

  /** The kind that is watched. */
  get type(): ResourceType {
    return this.#options.type;
  }

  /**
   * Calls `handler` with keys after every change: those that `keysOf` gives for the object before and after it
   * (its own key when absent). What handler or keysOf throw is logged and goes no further. Source: C9.
   */
  subscribe(
    handler: (key: string) => void,
    keysOf: (entry: CacheEntry<V>) => Iterable<string> = (entry) => [entry.key],
  ): void {
    this.#subscribers.push({ handler, keysOf });
  }

  /** Begins to follow. Throws TypeError when called again. */
  start(): void {
    if (this.#running !== undefined) throw new TypeError(`the informer of ${this.type.kind} was started already`);
    this.#running = this.#follow();
  }

  /** Resolves when nothing is open any more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#whenSynced.resolve(this.#synced);
    await this.#running;
  }

  /** True once the first list is complete. */
  hasSynced(): boolean {
    return this.#synced;
  }

  /** Resolves true once the first list is complete, false when the informer was stopped before. */
  whenSynced(): Promise<boolean> {
    return this.#whenSynced.promise;
  }

  /** Time since the last event, bookmark, list or opened watch. Units: milliseconds; Infinity before the first. */
  lastSignAgeMs(): number {
    return this.#ports.clock.monotonicMs() - this.#lastSignMs;
  }

  /** True when not synced yet or without a sign of life for longer than the limit. Source: K34. */
  isStale(limitMs: number = STALE_AFTER_MS): boolean {
    return !this.#synced || this.lastSignAgeMs() > limitMs;
  }

  /** Sets the gauges that are ages or sizes; for `onScrape`. */
  report(): void {
    const { kind } = this.type;
    const ageMs = this.lastSignAgeMs();
    if (Number.isFinite(ageMs)) this.#ports.metrics.watchLastEventAgeSeconds.set({ kind }, ageMs / 1_000);
    this.#ports.metrics.cacheObjects.set({ kind }, this.#cache.view.size());
  }

  async #follow(): Promise<void> {
    const { clock, random, log, metrics } = this.#ports;
    const { kind } = this.type;
    const { signal } = this.#stop;
    let fruitless = 0;
    while (!signal.aborted) {
      const connectedAtMs = clock.monotonicMs();
      let reason: WatchEndReason;
      let arrived = false;
      let failure: unknown;
      try {
        if (this.#resourceVersion === undefined || this.#listReason !== undefined) await this.#list();
        reason = await this.#watch(() => {
          arrived = true;
        });
      } catch (error) {
        failure = error;
        reason = this.#reasonOf(error);
      }
      if (signal.aborted) break;
      fruitless = arrived ? 0 : fruitless + 1;
      if (reason === 'expired' || reason === 'resync' || reason === 'stale') this.#listReason = reason;
      if (reason === 'silent') metrics.watchStallsTotal.inc({ kind });
      metrics.watchReconnectsTotal.inc({ kind, reason });
      const gapMs =
        failure === undefined || reason === 'expired'
          ? Math.min(CONNECT_GAP.mostMs, CONNECT_GAP.leastMs * 2 ** Math.min(fruitless, 10))
          : backoffMs(WATCH_BACKOFF, Math.max(1, fruitless), random);
      const pauseMs = Math.max(connectedAtMs + gapMs - clock.monotonicMs(), kubeErrorOf(failure)?.retryAfterMs ?? 0, 0);
      const level = failure === undefined ? 'debug' : 'warn';
      log[level]('watch ended', { kind, reason, pauseMs: Math.round(pauseMs), cause: failure && errorChain(failure) });
      await sleep(clock, pauseMs, signal);
    }
    metrics.watchConnected.set({ kind }, 0);
  }

  #reasonOf(error: unknown): WatchEndReason {
    const known = kubeErrorOf(error);
    if (known === undefined) return error instanceof StaleListError ? 'stale' : 'error';
    if (known.code === 410) return 'expired';
    if (known.reason === 'UnreadableWatch') return 'parse';
    return known.code === 0 ? 'reset' : 'error';
  }

  /** One full list, page by page; deletes at its end what it did not show. */
  async #list(): Promise<void> {
    const { client, clock, random, log, metrics } = this.#ports;
    const { type, selection, pageSize } = this.#options;
    const nowMs = clock.monotonicMs();
    this.#listTimesMs = [...this.#listTimesMs.filter((atMs) => nowMs - atMs < 60_000), nowMs];
    if (this.#listTimesMs.length > LISTS_PER_MINUTE)
      log.warn('many lists', { kind: type.kind, count: this.#listTimesMs.length });
    if (this.#synced) metrics.watchRelistsTotal.inc({ kind: type.kind, reason: this.#listReason ?? 'error' });

    const seen = new Set<string>();
    let listVersion: string | undefined;
    for await (const page of client.listPages(type, selection, { attempts: 1, pageSize, signal: this.#stop.signal })) {
      if (listVersion === undefined) this.#refuseStaleList(page.resourceVersion);
      listVersion = page.resourceVersion;
      for (const object of page.items) {
        seen.add(keyOf(object.metadata));
        this.#announce(this.#cache.put(object, this.#staleLists > STALE_LISTS));
      }
    }
    for (const change of this.#cache.retain(seen)) this.#announce(change);
    this.#resourceVersion = listVersion ?? '0';
    this.#listReason = undefined;
    this.#staleLists = 0;
    this.#lastSignMs = clock.monotonicMs();
    this.#relistAtMs = this.#lastSignMs + RELIST_INTERVAL_MS * (0.9 + 0.1 * random());
    metrics.cacheObjects.set({ kind: type.kind }, this.#cache.view.size());
    if (this.#synced) return;
    this.#synced = true;
    this.#whenSynced.resolve(true);
    log.info('cache synced', { kind: type.kind, count: this.#cache.view.size() });
  }

  #refuseStaleList(listVersion: string): void {
    const last = this.#resourceVersion;
    if (last === undefined || !isOlderVersion(listVersion, last)) return;
    this.#staleLists += 1;
    if (this.#staleLists <= STALE_LISTS) throw new StaleListError(this.type.kind);
  }

  /** One watch until it ends. Gives back the reason of an ordinary end; throws on any other. */
  async #watch(onArrival: () => void): Promise<WatchEndReason> {
    const { client, clock, random, metrics } = this.#ports;
    const { type, selection } = this.#options;
    const open = new AbortController();
    const end = () => open.abort();
    const forget = onAbort(this.#stop.signal, end);
    let ending: WatchEndReason = 'closed';
    const endFor = (reason: WatchEndReason) => {
      ending = reason;
      end();
    };
    let signMs = clock.monotonicMs();
    let cancelSilence = () => {};
    const awaitSign = (): void => {
      const leftMs = signMs + SILENCE_LIMIT_MS - clock.monotonicMs();
      if (leftMs <= 0) endFor('silent');
      else cancelSilence = clock.startTimer(leftMs, awaitSign);
    };
    awaitSign();
    const cancelRelist = clock.startTimer(this.#relistAtMs - clock.monotonicMs(), () => endFor('resync'));
    try {
      const { least, most } = WATCH_SECONDS;
      const events = await client.watch(type, {
        ...selection,
        resourceVersion: this.#resourceVersion ?? '0',
        timeoutSeconds: Math.round(least + random() * (most - least)),
        signal: open.signal,
      });
      metrics.watchConnected.set({ kind: type.kind }, 1);
      // An answer is a sign of life, too: a kind in which nothing happens gets no bookmark for minutes.
      signMs = clock.monotonicMs();
      this.#lastSignMs = signMs;
      for await (const { type: change, object } of events) {
        onArrival();
        signMs = clock.monotonicMs();
        this.#lastSignMs = signMs;
        const isNews = this.#advance(object.metadata.resourceVersion, change === 'BOOKMARK');
        if (!isNews || change === 'BOOKMARK') continue;
        this.#announce(change === 'DELETED' ? this.#cache.remove(object) : this.#cache.put(object));
      }
    } catch (error) {
      if (!open.signal.aborted) throw error;
    } finally {
      cancelSilence();
      cancelRelist();
      forget();
      metrics.watchConnected.set({ kind: type.kind }, 0);
    }
    return ending;
  }

  /**
   * Takes the version of an event; false for one that was seen before: a watch is ordered, so an event that is not
   * newer than the last one is a repetition, and an old ADDED must not bring back what is deleted. FA12.
   */
  #advance(resourceVersion: string | undefined, isBookmark: boolean): boolean {
    if (resourceVersion === undefined || resourceVersion === '') return true;
    const order =
      this.#resourceVersion === undefined ? 1 : compareResourceVersions(resourceVersion, this.#resourceVersion);
    if (order !== undefined && (isBookmark ? order < 0 : order <= 0)) return false;
    this.#resourceVersion = resourceVersion;
    return true;
  }

  #announce(change: CacheChange<V>): void {
    const { before, after } = change;
    if (after !== undefined) {
      this.#ports.ownWrites?.seen(this.type.kind, after.key, after.uid, after.deleting);
    } else if (before !== undefined) {
      this.#ports.ownWrites?.seen(this.type.kind, before.key, undefined, true);
    }
    if (change.kind === 'none') return;
    for (const { handler, keysOf } of this.#subscribers) {
      try {
        const keys = new Set<string>();
        for (const entry of [before, after]) {
          if (entry !== undefined) for (const key of keysOf(entry)) keys.add(key);
        }
        for (const key of keys) handler(key);
      } catch (error) {
        this.#ports.log.error('a handler of a watch threw', { kind: this.type.kind, err: error });
      }
    }
  }
}

class StaleListError extends Error {
  constructor(kind: string) {
    super(`a list of ${kind} is older than what was seen before`);
    this.name = 'StaleListError';
  }
}
