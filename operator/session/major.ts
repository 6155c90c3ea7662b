// Which parts of a Session's status are major: written at once. Pure. Source: K27.
import type { SessionStatus } from '#schema/resources/session.ts';
import type { StatusChange } from '../runtime/controller.ts';
import { conditionKey, statusChange } from '../runtime/status-change.ts';

const majorParts = (status: SessionStatus) => ({
  observedGeneration: status.observedGeneration,
  observedRestartToken: status.observedRestartToken,
  phase: status.phase,
  ready: conditionKey(status.conditions, 'Ready'),
  accepted: conditionKey(status.conditions, 'SpecAccepted'),
  binding: [status.pod?.uid, status.pod?.attempt],
  harness: [status.harness?.id, status.harness?.reason],
  failure: status.failure,
  suspension: status.suspension,
  finishedAt: status.finishedAt,
});

/** How different two statuses of a Session are. */
export const sessionStatusChange = (stored: SessionStatus | undefined, wanted: SessionStatus): StatusChange =>
  statusChange(stored, wanted, majorParts);
