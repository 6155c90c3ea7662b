// The time limits of upstream calls: connect and first byte, idle, total. One timer looks at all calls, so that a call
// costs none of its own; a limit is noticed at most one look late. Must not know HTTP.
import type { CancelTimer, Clock } from '#base/clock.ts';
import { Roster } from '#base/roster.ts';

/** Why a call was ended from this side. */
export type CallEnd = 'first_byte' | 'idle' | 'total' | 'client_left' | 'revoked';

/** The limits of a provider. Units: milliseconds. */
export type CallLimits = Readonly<{ first_byte_ms: number; idle_ms: number; total_ms: number }>;

/** Watches one call. */
export type CallWatch = Readonly<{
  /** Bytes came. */
  progress: () => void;
  /** Ends the call for a reason of its own; the first reason stays. */
  end: (why: CallEnd) => void;
  /** Why the call was ended; undefined while it was not. */
  ended: () => CallEnd | undefined;
  stop: () => void;
}>;

/** Starts a watch; `onEnd` runs once, at the first limit that is reached. */
export type StartWatch = (limits: CallLimits, onEnd: (why: CallEnd) => void) => CallWatch;

/** Time between two looks. Units: milliseconds. */
export const LOOK_MS = 50;

class Watch implements CallWatch {
  place = 0;
  readonly #all: Roster<Watch>;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #limits: CallLimits;
  readonly #onEnd: (why: CallEnd) => void;
  readonly #startedMs: number;
  #lastMs: number | undefined;
  #end: CallEnd | undefined;

  constructor(
    all: Roster<Watch>,
    clock: Pick<Clock, 'monotonicMs'>,
    limits: CallLimits,
    onEnd: (why: CallEnd) => void,
  ) {
    this.#all = all;
    this.#clock = clock;
    this.#limits = limits;
    this.#onEnd = onEnd;
    this.#startedMs = clock.monotonicMs();
    all.add(this);
  }

  progress(): void {
    this.#lastMs = this.#clock.monotonicMs();
  }

  end(why: CallEnd): void {
    if (this.#end !== undefined) return;
    this.#end = why;
    this.#all.remove(this);
    this.#onEnd(why);
  }

  ended(): CallEnd | undefined {
    return this.#end;
  }

  stop(): void {
    this.#all.remove(this);
  }

  look(nowMs: number): void {
    const { first_byte_ms, idle_ms, total_ms } = this.#limits;
    if (nowMs - this.#startedMs >= total_ms) this.end('total');
    else if (this.#lastMs === undefined) {
      if (nowMs - this.#startedMs >= first_byte_ms) this.end('first_byte');
    } else if (nowMs - this.#lastMs >= idle_ms) this.end('idle');
  }
}

/** Makes the watches of one gateway; no timer runs while no call does. */
export const makeWatches = (clock: Pick<Clock, 'monotonicMs' | 'startTimer'>): StartWatch => {
  const all = new Roster<Watch>();
  let cancel: CancelTimer | undefined;
  const look = (): void => {
    const nowMs = clock.monotonicMs();
    for (const watch of all.all()) watch.look(nowMs);
    cancel = all.size === 0 ? undefined : clock.startTimer(LOOK_MS, look);
  };
  return (limits, onEnd) => {
    cancel ??= clock.startTimer(LOOK_MS, look);
    return new Watch(all, clock, limits, onEnd);
  };
};
