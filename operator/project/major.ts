// Which parts of a Project's status are major: written at once. Pure. Source: K27.
import type { ProjectStatus } from '#schema/resources/project.ts';
import type { StatusChange } from '../runtime/controller.ts';
import { statusChange } from '../runtime/status-change.ts';

/** Reasons of WithinLimits that the count of Sessions decides between; that a budget is reached is news. */
const COUNTED: ReadonlySet<string> = new Set(['WithinLimits', 'SessionLimit']);

/**
 * Everything but the counts of Sessions, and where they show in WithinLimits or a deletion. Whether there is any Session is
 * major: the admission policy refuses to delete a Project by it (V4).
 */
const majorParts = (status: ProjectStatus) => ({
  ...status,
  sessions: (status.sessions?.total ?? 0) > 0,
  conditions: status.conditions
    ?.filter(({ type, reason }) => type !== 'WithinLimits' || !COUNTED.has(reason))
    .map(({ type, status: value, reason, message, observedGeneration }) => ({
      type,
      value,
      reason,
      observedGeneration,
      message: type === 'Ready' ? undefined : message,
    })),
});

/** How different two statuses of a Project are. */
export const projectStatusChange = (before: ProjectStatus | undefined, wanted: ProjectStatus): StatusChange =>
  statusChange(before, wanted, majorParts);
