// Runs work of one key one after another, keys side by side. Must not know what the work is.

/** Runs `work` when everything that was asked for earlier with the same key has ended, well or badly. */
export type KeyedLock = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/** Makes a lock; it holds nothing for keys without work. */
export const makeKeyedLock = (): KeyedLock => {
  const tails = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const before = tails.get(key) ?? Promise.resolve();
    const result = before.then(work, work);
    const tail: Promise<unknown> = result
      .catch(() => undefined)
      .finally(() => {
        if (tails.get(key) === tail) tails.delete(key);
      });
    tails.set(key, tail);
    return result;
  };
};
