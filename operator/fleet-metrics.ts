// Gauges of Projects and Sessions, set from the caches before each scrape. Must not know rules.
import type { Instruments } from '#base/metrics.ts';
import type { FLEET_METRICS } from '#schema/metrics.ts';
import { PROJECT_PHASES } from '#schema/resources/project.ts';
import { MANIFEST_RUNTIMES } from '#schema/resources/sandbox-fields.ts';
import { SESSION_PHASES } from '#schema/resources/session.ts';
import type { Caches } from './runtime/caches.ts';

const HARNESSES = [...MANIFEST_RUNTIMES, 'other'] as const;

const tally = (values: Iterable<string | undefined>): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const value of values) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
};

/** Sets the gauges; every combination of labels is set, so that none keeps an old value. */
export const reportFleet = (
  caches: Pick<Caches<unknown, unknown, unknown>, 'projects' | 'sessions'>,
  queued: number,
  metrics: Instruments<typeof FLEET_METRICS>,
): void => {
  const projects = tally([...caches.projects.cache.entries()].map(({ value }) => value?.status?.phase ?? 'Pending'));
  for (const phase of PROJECT_PHASES) metrics.projects.set({ phase }, projects.get(phase) ?? 0);
  const sessions = tally(
    [...caches.sessions.cache.entries()].map(({ value }) => {
      const harness = value?.status?.harness?.id ?? 'other';
      const known = HARNESSES.some((id) => id === harness) ? harness : 'other';
      return `${value?.status?.phase ?? 'Pending'} ${known}`;
    }),
  );
  for (const phase of SESSION_PHASES) {
    for (const harness of HARNESSES) {
      metrics.sessions.set({ phase, harness }, sessions.get(`${phase} ${harness}`) ?? 0);
    }
  }
  metrics.sessionsQueued.set({}, queued);
};
