// The API server's clock, estimated from the `Date` headers of its answers. Pure: takes readings, knows no clock.

/** Estimates the server's time relative to our monotonic clock; clock jumps of ours do not move it. Source: K20, FA15. */
export class ServerTime {
  /** Bounds of server time minus monotonic time, each answer narrows them. */
  #lowMs = Number.NEGATIVE_INFINITY;
  #highMs = Number.POSITIVE_INFINITY;

  /** Takes one answer: the `Date` header (whole seconds) and the monotonic times of sending and of the answer. */
  observe(dateHeader: string | undefined, sentMs: number, receivedMs: number): void {
    const dateMs = dateHeader === undefined ? Number.NaN : Date.parse(dateHeader);
    if (Number.isNaN(dateMs)) return;
    const low = dateMs - receivedMs;
    const high = dateMs + 1_000 - sentMs;
    this.#lowMs = Math.max(this.#lowMs, low);
    this.#highMs = Math.min(this.#highMs, high);
    if (this.#lowMs <= this.#highMs) return;
    // The server's clock was set, or the two drift: begin again with what it says now.
    this.#lowMs = low;
    this.#highMs = high;
  }

  /** Milliseconds since 1970 on the server's clock, or undefined before the first answer. Error: at most one second. */
  at(monotonicMs: number): number | undefined {
    return Number.isFinite(this.#lowMs) ? monotonicMs + (this.#lowMs + this.#highMs) / 2 : undefined;
  }
}
