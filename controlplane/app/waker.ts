// Lets calls wait for a change of one of several keys. Must not know what the keys are.
import type { Clock } from '#base/clock.ts';

/** A wait that has begun: changes from its creation on count. */
export type Wait = Readonly<{
  /** Resolves at the first change, after `timeoutMs`, or when `signal` fires; never rejects. */
  until: (timeoutMs: number, signal: AbortSignal) => Promise<void>;
  /** Gives up a wait that nobody will await. */
  cancel: () => void;
}>;

/** Waits by key. */
export type Waker = Readonly<{
  /** Begin before looking, so that a change between the look and the wait is not missed. */
  begin: (keys: readonly string[]) => Wait;
  wake: (key: string) => void;
  wakeAll: () => void;
}>;

/** A waker over a clock; it holds nothing for keys that nobody waits for. */
export const makeWaker = (clock: Clock): Waker => {
  const waiting = new Map<string, Set<() => void>>();

  const begin = (keys: readonly string[]): Wait => {
    let isOver = false;
    let notify: (() => void) | undefined;
    const onWake = () => {
      isOver = true;
      notify?.();
    };
    const cancel = () => {
      for (const key of keys) {
        const set = waiting.get(key);
        set?.delete(onWake);
        if (set?.size === 0) waiting.delete(key);
      }
    };
    for (const key of keys) {
      const set = waiting.get(key);
      if (set === undefined) waiting.set(key, new Set([onWake]));
      else set.add(onWake);
    }
    const until = (timeoutMs: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        const cancelTimer = clock.startTimer(timeoutMs, () => done());
        const done = () => {
          cancelTimer();
          signal.removeEventListener('abort', done);
          cancel();
          resolve();
        };
        notify = done;
        signal.addEventListener('abort', done, { once: true });
        if (isOver || signal.aborted) done();
      });
    return { until, cancel };
  };

  return {
    begin,
    wake: (key) => {
      for (const onWake of waiting.get(key) ?? []) onWake();
    },
    wakeAll: () => {
      // A wake removes entries while this goes on; a Map and a Set allow that.
      for (const set of waiting.values()) for (const onWake of set) onWake();
    },
  };
};
