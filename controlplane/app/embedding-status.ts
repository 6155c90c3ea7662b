// State of the embedding model: asked once a minute at most, and only when somebody looks. Must not know sockets or keys.
// Source: 40-settings B22.
import type { Clock } from '#base/clock.ts';
import type { EmbeddingStatus } from '#schema/rest/workspace-settings.ts';
import type { ReadEmbeddingStatus } from './settings-ports.ts';

/** Embeds a word with a registered model and gives back the size of the vector. Rejects with a message without a key. */
export type ProbeEmbedding = (model: string, signal: AbortSignal) => Promise<number>;

/** What the status is made from. `model`: `provider/model`; null when none is configured. */
export type EmbeddingPorts = Readonly<{ model: string | null; probe: ProbeEmbedding; clock: Clock }>;

/** How long an answer counts. Units: milliseconds. */
const FRESH_MS = 60_000;
/** How long a look may take. Units: milliseconds. */
const PROBE_LIMIT_MS = 5_000;
const MAX_ERROR = 512;

const NONE: EmbeddingStatus = { model: null, reachable: null, last_error: null, vector_size: null, checked_at: null };

/** Makes the function; looks at nothing before the first call. */
export const makeEmbeddingStatus = ({ model, probe, clock }: EmbeddingPorts): ReadEmbeddingStatus => {
  if (model === null) return async () => NONE;
  let held: Readonly<{ status: EmbeddingStatus; atMs: number }> | undefined;
  let looking: Promise<EmbeddingStatus> | undefined;

  const look = async (): Promise<EmbeddingStatus> => {
    const controller = new AbortController();
    const cancel = clock.startTimer(PROBE_LIMIT_MS, () => controller.abort());
    const checked_at = new Date(clock.nowMs()).toISOString();
    try {
      const size = await probe(model, controller.signal);
      return { model, reachable: true, last_error: null, vector_size: size, checked_at };
    } catch (error) {
      const text = error instanceof Error ? error.message : 'the embedding model could not be reached';
      const vector_size = held?.status.vector_size ?? null;
      return { model, reachable: false, last_error: text.slice(0, MAX_ERROR), vector_size, checked_at };
    } finally {
      cancel();
    }
  };

  return async () => {
    if (held !== undefined && clock.monotonicMs() - held.atMs < FRESH_MS) return held.status;
    looking ??= look().finally(() => {
      looking = undefined;
    });
    const status = await looking;
    held = { status, atMs: clock.monotonicMs() };
    return status;
  };
};
