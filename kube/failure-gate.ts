// Keeps us from hammering a server that fails: at most one request per second and kind until one succeeds.
// Must not know requests, only kinds and outcomes.
import { type Clock, sleep } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';

/** Time between two requests of one kind while the server fails. Units: milliseconds. Source: K38. */
export const FAILING_GAP_MS = 1_000;
/** Longest wait for a turn; above it the request is given up, so that no lane is held. Units: milliseconds. */
const LONGEST_WAIT_MS = 5_000;

/** One gate per client. Source: K38, FA8, FA9. */
export class FailureGate {
  readonly #clock: Clock;
  readonly #onThrottled: () => void;
  /** Kinds whose last request failed, with the monotonic time of the next turn. */
  readonly #failing = new Map<string, { nextMs: number }>();

  constructor(ports: Readonly<{ clock: Clock; onThrottled: () => void }>) {
    this.#clock = ports.clock;
    this.#onThrottled = ports.onThrottled;
  }

  /** Resolves when a request of the kind may be sent. Errors: UnavailableError when the wait would be above 5 s. */
  async enter(kind: string, signal: AbortSignal): Promise<void> {
    const state = this.#failing.get(kind);
    if (state === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const turnMs = Math.max(nowMs, state.nextMs);
    this.#onThrottled();
    if (turnMs - nowMs > LONGEST_WAIT_MS) {
      throw new UnavailableError('api_server_unavailable', 'the Kubernetes API server could not be reached', {
        detail: `requests for ${kind} pause because the last one failed`,
        retryAfterMs: Math.round(turnMs - nowMs),
      });
    }
    state.nextMs = turnMs + FAILING_GAP_MS;
    await sleep(this.#clock, turnMs - nowMs, signal);
  }

  /** The server answered: the kind is free again. */
  succeeded(kind: string): void {
    this.#failing.delete(kind);
  }

  /** The server failed; the next request of the kind waits at least one second and what the server asked for. */
  failed(kind: string, retryAfterMs = 0): void {
    const state = this.#failing.get(kind) ?? { nextMs: 0 };
    state.nextMs = Math.max(state.nextMs, this.#clock.monotonicMs() + Math.max(FAILING_GAP_MS, retryAfterMs));
    this.#failing.set(kind, state);
  }
}
