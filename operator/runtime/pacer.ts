// Lets keys through one after the other at a bounded rate, so that one change of much wakes its followers gently.
// Must not know what the keys are for. Source: 10-kubernetes §5 (≤ 100 Sessions per second), §6 (≤ 50 writes per second).
import type { CancelTimer, Clock } from '#base/clock.ts';

/** A line of keys. A key waits once. */
export class Pacer {
  readonly #clock: Clock;
  readonly #gapMs: number;
  readonly #pass: (key: string) => void;
  readonly #waiting = new Set<string>();
  #cancel: CancelTimer | undefined;

  /** `perSecond` keys are passed on at most. */
  constructor(ports: Readonly<{ clock: Clock; perSecond: number; pass: (key: string) => void }>) {
    this.#clock = ports.clock;
    this.#gapMs = 1_000 / ports.perSecond;
    this.#pass = ports.pass;
  }

  /** Lines keys up; the first goes at once when nobody waits. */
  add(keys: Iterable<string>): void {
    for (const key of keys) this.#waiting.add(key);
    if (this.#cancel === undefined) this.#next();
  }

  /** Drops all that wait. */
  stop(): void {
    this.#waiting.clear();
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #next(): void {
    this.#cancel = undefined;
    const [key] = this.#waiting;
    if (key === undefined) return;
    this.#waiting.delete(key);
    this.#cancel = this.#clock.startTimer(this.#gapMs, () => this.#next());
    this.#pass(key);
  }
}
