// Counters of what became of Sessions, and gauges of the fleet that are set from the caches before each scrape.
// Must not know rules.
import type { Instruments } from '#base/metrics.ts';
import type { FLEET_METRICS } from '#schema/metrics.ts';
import { CONDITION_STATUSES, PROJECT_CONDITIONS } from '#schema/resources/conditions.ts';
import { PROJECT_PHASES } from '#schema/resources/project.ts';
import { MANIFEST_RUNTIMES } from '#schema/resources/sandbox-fields.ts';
import { SESSION_PHASES } from '#schema/resources/session.ts';
import type { Caches, Child, Watched } from './runtime/caches.ts';
import type { StatusCount } from './session/status-counts.ts';

const HARNESSES = [...MANIFEST_RUNTIMES, 'other'] as const;

const harnessOf = (id: string | undefined): string => HARNESSES.find((known) => known === id) ?? 'other';

/** Counters that a written status moves. */
export type FleetCounters = Pick<
  Instruments<typeof FLEET_METRICS>,
  | 'sessionFailuresTotal'
  | 'sessionStartsTotal'
  | 'sessionStartDurationSeconds'
  | 'sessionSuspendsTotal'
  | 'sessionWakesTotal'
  | 'sessionDisruptionsTotal'
>;

/** Moves the counter that a count is for. */
export const countStatus = (count: StatusCount, metrics: FleetCounters): void => {
  switch (count.what) {
    case 'start': {
      const { harness, kind, result, seconds } = count;
      metrics.sessionStartsTotal.inc({ harness, kind, result });
      if (seconds !== undefined) metrics.sessionStartDurationSeconds.observe({ harness, kind }, seconds);
      return;
    }
    case 'suspend':
      return metrics.sessionSuspendsTotal.inc({ reason: count.reason });
    case 'wake':
      return metrics.sessionWakesTotal.inc({ reason: count.reason });
    case 'failure':
      return metrics.sessionFailuresTotal.inc({ category: count.category });
    case 'disruption':
      return metrics.sessionDisruptionsTotal.inc({ reason: count.category });
  }
};

const tally = (values: Iterable<string | undefined>): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const value of values) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
};

/** Sets the gauges; every combination of labels is set, so that none keeps an old value. */
export const reportFleet = (
  caches: Omit<Caches<unknown, unknown, unknown>, 'informers'>,
  queued: number,
  metrics: Instruments<typeof FLEET_METRICS>,
): void => {
  const projects = tally([...caches.projects.cache.entries()].map(({ value }) => value?.status?.phase ?? 'Pending'));
  for (const phase of PROJECT_PHASES) metrics.projects.set({ phase }, projects.get(phase) ?? 0);
  const sessions = tally(
    [...caches.sessions.cache.entries()].map(({ value }) => {
      return `${value?.status?.phase ?? 'Pending'} ${harnessOf(value?.status?.harness?.id)}`;
    }),
  );
  for (const phase of SESSION_PHASES) {
    for (const harness of HARNESSES) {
      metrics.sessions.set({ phase, harness }, sessions.get(`${phase} ${harness}`) ?? 0);
    }
  }
  metrics.sessionsQueued.set({}, queued);
  const working = tally(
    [...caches.sessions.cache.entries()].map(({ value }) => {
      const state = value?.status?.activity?.state;
      return state === 'Working' || state === 'WaitingForInput' ? harnessOf(value?.status?.harness?.id) : undefined;
    }),
  );
  for (const harness of HARNESSES) metrics.turnsActive.set({ harness }, working.get(harness) ?? 0);
  const open = [...caches.sessions.cache.entries()].filter(({ value }) =>
    value?.status?.conditions?.some(({ type, status }) => type === 'NetworkIsolated' && status === 'False'),
  );
  metrics.isolationNotEnforced.set({}, open.filter(({ value }) => value?.status?.pod?.uid !== undefined).length);
  const conditions = tally(
    [...caches.projects.cache.entries()].flatMap(({ value }) =>
      (value?.status?.conditions ?? []).map(({ type, status }) => `${type} ${status}`),
    ),
  );
  for (const type of Object.keys(PROJECT_CONDITIONS)) {
    for (const status of CONDITION_STATUSES) {
      metrics.projectCondition.set({ type, status }, conditions.get(`${type} ${status}`) ?? 0);
    }
  }
  const isKnown = (uid: string): boolean => caches.sessions.cache.byUid(uid) !== undefined;
  for (const [kind, { cache }] of [
    ['Pod', caches.pods],
    ['NetworkPolicy', caches.networkPolicies],
    ['PersistentVolumeClaim', caches.volumes],
  ] as const satisfies readonly (readonly [string, Watched<Child<unknown>>])[]) {
    let orphans = 0;
    // A volume that is retained has no owner, and is meant to stay.
    for (const { ownerUid } of cache.entries()) if (ownerUid !== undefined && !isKnown(ownerUid)) orphans += 1;
    metrics.orphans.set({ kind }, orphans);
  }
};
