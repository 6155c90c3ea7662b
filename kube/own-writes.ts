// Remembers our own creates and deletes until the cache shows them, so that a stale cache never causes a second try.
// Must not know requests; informer.ts reports what it sees. Source: K28, FA11.
import type { Clock } from '#base/clock.ts';
import { isOlderVersion } from './cache.ts';

/** How long a write is remembered at most. Units: milliseconds. */
export const OWN_WRITE_LIMIT_MS = 30_000;

type Memory = Readonly<{ write: 'create' | 'delete'; uid: string; atMs: number }>;

/** Own writes of one process, by kind and key. */
export class OwnWrites {
  readonly #clock: Clock;
  readonly #memories = new Map<string, Memory>();
  readonly #applied = new Map<string, Readonly<{ resourceVersion: string; atMs: number }>>();

  constructor(ports: Readonly<{ clock: Clock }>) {
    this.#clock = ports.clock;
  }

  /** To be called after a create succeeded, or its object was adopted. */
  created(kind: string, key: string, uid: string): void {
    this.#memories.set(`${kind} ${key}`, { write: 'create', uid, atMs: this.#clock.monotonicMs() });
  }

  /** To be called after a delete was accepted. */
  deleted(kind: string, key: string, uid: string): void {
    this.#memories.set(`${kind} ${key}`, { write: 'delete', uid, atMs: this.#clock.monotonicMs() });
  }

  /** To be called after an apply, with the resource version that the server answered. */
  applied(kind: string, key: string, resourceVersion: string): void {
    this.#applied.set(`${kind} ${key}`, { resourceVersion, atMs: this.#clock.monotonicMs() });
  }

  /** True while the cache shows an older version than our own apply made. */
  appliedUnseen(kind: string, key: string, cachedVersion: string): boolean {
    const memory = this.#applied.get(`${kind} ${key}`);
    if (memory === undefined) return false;
    const isRecent = this.#clock.monotonicMs() - memory.atMs <= OWN_WRITE_LIMIT_MS;
    if (isRecent && isOlderVersion(cachedVersion, memory.resourceVersion)) return true;
    this.#applied.delete(`${kind} ${key}`);
    return false;
  }

  /** To be called for every object that the watch shows: its uid, or undefined once it is gone. */
  seen(kind: string, key: string, uid: string | undefined, deleting: boolean): void {
    const memory = this.#recall(kind, key);
    if (memory === undefined) return;
    const shown = memory.write === 'create' ? memory.uid === uid : memory.uid !== uid || deleting;
    if (shown) this.#memories.delete(`${kind} ${key}`);
  }

  /** Uid of an object that we created and the cache does not show yet; undefined when there is none. */
  createdUnseen(kind: string, key: string): string | undefined {
    const memory = this.#recall(kind, key);
    return memory?.write === 'create' ? memory.uid : undefined;
  }

  /** True while the cache still shows an object as alive that we deleted. */
  deletedUnseen(kind: string, key: string, uid: string): boolean {
    const memory = this.#recall(kind, key);
    return memory?.write === 'delete' && memory.uid === uid;
  }

  #recall(kind: string, key: string): Memory | undefined {
    const memory = this.#memories.get(`${kind} ${key}`);
    if (memory === undefined || this.#clock.monotonicMs() - memory.atMs <= OWN_WRITE_LIMIT_MS) return memory;
    this.#memories.delete(`${kind} ${key}`);
    return undefined;
  }
}
