// The provider registry in memory: read again when its generation grew, served for a bounded time while the database is away.
// Must not know who reads it. Source: 20-control-plane §5, FC11.
import type { Clock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import type { ProviderStore, ReadRegistry, Registry } from './provider-ports.ts';

/** Age at which the cached registry is compared with the database. Units: milliseconds. */
const CHECK_AFTER_MS = 2_000;
/** How long the cached registry serves model calls while the database is away. Units: milliseconds. */
const GRACE_MS = 600_000;

/** The registry for decisions that are saved (`fresh`) and for model calls (`cached`). */
export type RegistryReader = Readonly<{
  /** Errors: UnavailableError `registry_unavailable`. */
  fresh: () => Promise<Registry>;
  /** At most 2 s old while the database answers, at most 10 min while it does not. Errors: as `fresh`. */
  cached: ReadRegistry;
}>;

const unavailable = (cause: unknown): UnavailableError =>
  new UnavailableError('registry_unavailable', 'the provider registry cannot be read now', {
    cause,
    retryAfterMs: 2_000,
  });

/** Makes the reader; reads nothing before the first call. Concurrent refreshes share one query. */
export const makeRegistryReader = (
  ports: Readonly<{ store: Pick<ProviderStore, 'generation' | 'registry'>; clock: Clock }>,
): RegistryReader => {
  const { store, clock } = ports;
  let held: Readonly<{ registry: Registry; checkedAtMs: number }> | undefined;
  let running: Promise<Registry> | undefined;

  const refresh = async (): Promise<Registry> => {
    const generation = held === undefined ? undefined : await store.generation();
    const registry =
      held !== undefined && held.registry.generation === generation ? held.registry : await store.registry();
    held = { registry, checkedAtMs: clock.monotonicMs() };
    return registry;
  };
  const refreshOnce = (): Promise<Registry> => {
    running ??= refresh().finally(() => {
      running = undefined;
    });
    return running;
  };

  return {
    fresh: async () => {
      try {
        const registry = await store.registry();
        held = { registry, checkedAtMs: clock.monotonicMs() };
        return registry;
      } catch (error) {
        throw unavailable(error);
      }
    },
    cached: () => {
      const ageMs = held === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() - held.checkedAtMs;
      if (held !== undefined && ageMs < CHECK_AFTER_MS) return held.registry;
      return refreshOnce().catch((error: unknown) => {
        if (held !== undefined && ageMs < GRACE_MS) return held.registry;
        throw unavailable(error);
      });
    },
  };
};
