// What a watch has told, by key and by index. Pure: entries come from informer.ts; must not know connections or time.
import { type KubeObject, keyOf } from './resource-types.ts';

/** One cached object. `value` is the projection, frozen; undefined when the projection threw, and `problem` says why. */
export type CacheEntry<V> = Readonly<{
  key: string;
  namespace: string | undefined;
  name: string;
  uid: string;
  resourceVersion: string;
  generation: number;
  deleting: boolean;
  /** Uid of the controller owner. */
  ownerUid: string | undefined;
  value: V | undefined;
  problem: string | undefined;
}>;

/** Values under which an entry is found in one index. */
export type IndexOf<V> = (entry: CacheEntry<V>) => readonly string[];

/** What an event did to the cache; `replaced` is another uid under the same key: a delete and an add. C10. */
export type CacheChange<V> = Readonly<{
  kind: 'added' | 'updated' | 'replaced' | 'deleted' | 'none';
  before: CacheEntry<V> | undefined;
  after: CacheEntry<V> | undefined;
}>;

/** What readers see of a cache. Nothing here goes out; entries are frozen. */
export type CacheView<V> = Readonly<{
  /** The projection under a key; undefined when absent or unreadable. */
  get: (key: string) => V | undefined;
  entry: (key: string) => CacheEntry<V> | undefined;
  byUid: (uid: string) => CacheEntry<V> | undefined;
  byOwner: (uid: string) => readonly CacheEntry<V>[];
  /** Entries of a custom index, by key. Throws TypeError for an index that was not declared. */
  byIndex: (index: string, value: string) => readonly CacheEntry<V>[];
  entries: () => IterableIterator<CacheEntry<V>>;
  size: () => number;
}>;

/** Freezes a JSON value and everything in it. */
export const deepFreeze = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
};

const NUMBER = /^[0-9]+$/;

/**
 * Below 0 when `a` is older than `b`, above when newer, 0 when equal; undefined when they cannot be compared.
 * Resource versions of the API server are numbers that grow.
 */
export const compareResourceVersions = (a: string, b: string): number | undefined => {
  if (!NUMBER.test(a) || !NUMBER.test(b)) return undefined;
  if (a === b) return 0;
  return a.length === b.length ? (a < b ? -1 : 1) : a.length - b.length;
};

/** True when `a` is surely older than `b`. */
export const isOlderVersion = (a: string, b: string): boolean => (compareResourceVersions(a, b) ?? 0) < 0;

/** Entries of one kind. Source: C10, C12, K20, 10-kubernetes §5. */
export class Cache<V> {
  readonly #project: (object: KubeObject) => V;
  readonly #indexers: ReadonlyMap<string, IndexOf<V>>;
  readonly #entries = new Map<string, CacheEntry<V>>();
  readonly #indexes = new Map<string, Map<string, Set<string>>>();

  /** `project` keeps what is read; it may throw for an object that it cannot read. */
  constructor(project: (object: KubeObject) => V, indexes: Readonly<Record<string, IndexOf<V>>> = {}) {
    this.#project = project;
    const own: Record<string, IndexOf<V>> = {
      uid: (entry) => [entry.uid],
      owner: (entry) => (entry.ownerUid === undefined ? [] : [entry.ownerUid]),
    };
    this.#indexers = new Map(Object.entries({ ...indexes, ...own }));
    for (const name of this.#indexers.keys()) this.#indexes.set(name, new Map());
  }

  /**
   * Takes an object as it is now. An object older than the cached one changes nothing, unless `isRestored`: the store
   * went back in time and its versions count again.
   */
  put(object: KubeObject, isRestored = false): CacheChange<V> {
    const after = this.#read(object);
    const before = this.#entries.get(after.key);
    if (before === undefined) {
      this.#store(after);
      return { kind: 'added', before, after };
    }
    const sameObject = before.uid === after.uid;
    const isOld = !isRestored && isOlderVersion(after.resourceVersion, before.resourceVersion);
    if (isOld || (sameObject && before.resourceVersion === after.resourceVersion)) {
      return { kind: 'none', before, after: before };
    }
    this.#drop(before);
    this.#store(after);
    return { kind: sameObject ? 'updated' : 'replaced', before, after };
  }

  /** Takes the news that an object is gone. News older than the cached object, as in a replay, changes nothing. */
  remove(object: KubeObject): CacheChange<V> {
    const before = this.#entries.get(keyOf(object.metadata));
    if (before === undefined || isOlderVersion(object.metadata.resourceVersion ?? '', before.resourceVersion)) {
      return { kind: 'none', before, after: before };
    }
    return this.#deleted(before);
  }

  /** Deletes what a full list did not show; gives back one change for each. */
  retain(seenKeys: ReadonlySet<string>): CacheChange<V>[] {
    return [...this.#entries.values()].filter((entry) => !seenKeys.has(entry.key)).map((entry) => this.#deleted(entry));
  }

  /** The read-only side. */
  readonly view: CacheView<V> = {
    get: (key) => this.#entries.get(key)?.value,
    entry: (key) => this.#entries.get(key),
    byUid: (uid) => this.#find('uid', uid)[0],
    byOwner: (uid) => this.#find('owner', uid),
    byIndex: (index, value) => this.#find(index, value),
    entries: () => this.#entries.values(),
    size: () => this.#entries.size,
  };

  #deleted(before: CacheEntry<V>): CacheChange<V> {
    this.#drop(before);
    return { kind: 'deleted', before, after: undefined };
  }

  #read(object: KubeObject): CacheEntry<V> {
    const { metadata } = object;
    let value: V | undefined;
    let problem: string | undefined;
    try {
      value = deepFreeze(this.#project(object));
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
    return Object.freeze({
      key: keyOf(metadata),
      namespace: metadata.namespace,
      name: metadata.name,
      uid: metadata.uid ?? '',
      resourceVersion: metadata.resourceVersion ?? '',
      generation: metadata.generation ?? 0,
      deleting: metadata.deletionTimestamp !== undefined,
      ownerUid: metadata.ownerReferences?.find((owner) => owner.controller === true)?.uid,
      value,
      problem,
    });
  }

  #find(index: string, value: string): CacheEntry<V>[] {
    const buckets = this.#indexes.get(index);
    if (buckets === undefined) throw new TypeError(`no index ${index} was declared`);
    const found: CacheEntry<V>[] = [];
    for (const key of buckets.get(value) ?? []) {
      const entry = this.#entries.get(key);
      if (entry !== undefined) found.push(entry);
    }
    return found;
  }

  #store(entry: CacheEntry<V>): void {
    this.#entries.set(entry.key, entry);
    for (const [name, indexOf] of this.#indexers) {
      const buckets = this.#indexes.get(name);
      for (const value of indexOf(entry)) {
        const bucket = buckets?.get(value) ?? new Set<string>();
        bucket.add(entry.key);
        buckets?.set(value, bucket);
      }
    }
  }

  #drop(entry: CacheEntry<V>): void {
    this.#entries.delete(entry.key);
    for (const [name, indexOf] of this.#indexers) {
      const buckets = this.#indexes.get(name);
      for (const value of indexOf(entry)) {
        const bucket = buckets?.get(value);
        bucket?.delete(entry.key);
        if (bucket?.size === 0) buckets?.delete(value);
      }
    }
  }
}
