// What one written status of a Session adds to the counters: starts, suspensions, wakes, disruptions, failures. Pure.
// Must not know instruments. Source: 10-kubernetes §10.
import { findCondition } from '#kube/conditions.ts';
import type { FailureCategory, SessionStatus, SuspensionReason } from '#schema/resources/session.ts';
import { timeMs } from '../runtime/time.ts';
import { isDisruption } from './failures.ts';

/** What is counted. `kind`: `cold` for the first sandbox of a Session, `resume` for every later one. */
export type StatusCount =
  | Readonly<{
      what: 'start';
      harness: string;
      kind: 'cold' | 'resume';
      result: 'ready' | 'failed';
      /** From the making of the pod until it was Ready. Units: seconds; undefined for a start that failed. */
      seconds: number | undefined;
    }>
  | Readonly<{ what: 'suspend' | 'wake'; reason: SuspensionReason }>
  | Readonly<{ what: 'failure' | 'disruption'; category: FailureCategory }>;

const newFailure = (before: SessionStatus, after: SessionStatus): FailureCategory | undefined => {
  const { failure } = after;
  const isOld = before.failure?.since === failure?.since && before.failure?.category === failure?.category;
  return isOld ? undefined : failure?.category;
};

const startOf = (status: SessionStatus) => ({
  what: 'start' as const,
  harness: status.harness?.id ?? 'other',
  kind: (status.pod?.attempt ?? 1) > 1 ? ('resume' as const) : ('cold' as const),
});

/** The counts of the change from the stored status to the written one. */
export const statusCounts = (before: SessionStatus | undefined, after: SessionStatus): readonly StatusCount[] => {
  const stored = before ?? {};
  const counts: StatusCount[] = [];
  const failed = newFailure(stored, after);
  if (failed !== undefined) counts.push({ what: 'failure', category: failed });
  if (failed !== undefined && isDisruption({ category: failed })) counts.push({ what: 'disruption', category: failed });
  // A pod that was never Ready and is given up is a start that failed; one that the API server refused as well.
  const wasStarting = stored.phase === 'Starting' || (after.pod?.uid === undefined && stored.pod?.uid === undefined);
  if (failed !== undefined && wasStarting && !isDisruption({ category: failed }) && after.phase !== 'Running') {
    counts.push({ ...startOf(stored.harness === undefined ? after : stored), result: 'failed', seconds: undefined });
  }
  const isNewlyReady = after.readyAt !== stored.readyAt || after.pod?.uid !== stored.pod?.uid;
  if (after.readyAt !== undefined && after.pod?.uid !== undefined && isNewlyReady) {
    const [ready, started] = [timeMs(after.readyAt), timeMs(after.startedAt)];
    const seconds = ready === undefined || started === undefined ? undefined : Math.max(0, ready - started) / 1_000;
    counts.push({ ...startOf(after), result: 'ready', seconds });
  }
  const [slept, sleeps] = [stored.suspension?.reason, after.suspension?.reason];
  if (sleeps !== undefined && sleeps !== slept) counts.push({ what: 'suspend', reason: sleeps });
  const isOver = findCondition(after.conditions ?? [], 'Finished')?.status === 'True' || after.phase === 'Deleting';
  if (slept !== undefined && sleeps === undefined && !isOver) counts.push({ what: 'wake', reason: slept });
  return counts;
};
