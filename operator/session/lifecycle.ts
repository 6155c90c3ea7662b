// What a Session should be now: run, restart, sleep or end. Pure; from spec, stored status and facts, never from memory.
// Must not know how that is reached. Source: 10-kubernetes §4.
//
//   run ──(operatingMode, Project)──> suspend ──(resumed, wanted)──> run
//   run ──(restartToken)──> restart ──> run          any ──(Task final, lifetime)──> finish
import { findCondition } from '#kube/conditions.ts';
import type { FailureCategory, SuspensionReason } from '#schema/resources/session.ts';
import { timeMs } from '../runtime/time.ts';
import { effectiveLifecycle } from './effective.ts';
import { isBlocked } from './failures.ts';
import type { ObservedPod, ObservedSession } from './observed.ts';
import type { FailureSign } from './pod-signs.ts';

/** How a Session ended. */
export type EndOutcome = 'Succeeded' | 'Failed' | 'Expired';

/** What should be. */
export type Intent =
  | Readonly<{ kind: 'finished'; outcome: EndOutcome; isNew: boolean; failure: FailureSign | undefined }>
  | Readonly<{ kind: 'suspend'; reason: SuspensionReason }>
  | Readonly<{ kind: 'restart' }>
  | Readonly<{ kind: 'run' }>;

/** Grace before a running Session without its Project is suspended. Units: milliseconds. */
const PROJECT_GONE_MS = 60_000;

/** When the lifetime is over. Units: milliseconds since 1970; undefined: never. */
export const expiresAtMs = (o: ObservedSession): number | undefined => {
  const { maxLifetimeSeconds } = effectiveLifecycle(o.session, o.project, o.installation);
  const createdMs = timeMs(o.session.metadata.creationTimestamp);
  return maxLifetimeSeconds === 0 || createdMs === undefined ? undefined : createdMs + maxLifetimeSeconds * 1_000;
};

const storedOutcome = (o: ObservedSession): EndOutcome => {
  if (o.session.spec.mode !== 'Task') return 'Expired';
  return o.session.status?.failure === undefined ? 'Succeeded' : 'Failed';
};

const TASK_ENDS: Readonly<Record<'Failed' | 'Aborted' | 'Interrupted', FailureCategory>> = {
  Failed: 'TurnFailed',
  Aborted: 'Aborted',
  Interrupted: 'TurnFailed',
};

const newEnd = (o: ObservedSession): Intent | undefined => {
  const isTask = o.session.spec.mode === 'Task';
  const final = isTask ? o.fact?.specPromptFinal : undefined;
  if (final !== undefined && final !== null) {
    if (final.outcome === 'Succeeded')
      return { kind: 'finished', outcome: 'Succeeded', isNew: true, failure: undefined };
    const message = final.message ?? `the turn of spec.prompt ended ${final.outcome}`;
    const failure = { category: TASK_ENDS[final.outcome], message };
    return { kind: 'finished', outcome: 'Failed', isNew: true, failure };
  }
  const expires = expiresAtMs(o);
  if (expires !== undefined && o.now >= expires) {
    if (!isTask) return { kind: 'finished', outcome: 'Expired', isNew: true, failure: undefined };
    const failure: FailureSign = { category: 'LifetimeExceeded', message: 'lifecycle.maxLifetimeSeconds is over' };
    return { kind: 'finished', outcome: 'Failed', isNew: true, failure };
  }
  return isTask && isBlocked(o.session.status?.failure)
    ? { kind: 'finished', outcome: 'Failed', isNew: true, failure: undefined }
    : undefined;
};

/** A suspension that no spec asks for lasts until the control plane says that the Session is wanted. */
const staysAsleep = (o: ObservedSession): SuspensionReason | undefined => {
  const stored = o.session.status?.suspension?.reason;
  if (stored === undefined || stored === 'Requested') return undefined;
  const isWanted = o.controlPlane.state === 'available' && o.fact?.wanted === true;
  if (isWanted) return undefined;
  if (stored === 'ProjectSuspended') return o.session.spec.mode === 'Task' ? undefined : 'Idle';
  return stored;
};

/**
 * The budget is used up, the turn that found it so has ended, and the Session asks to sleep then. Without a pod it sleeps on
 * whatever is wanted: nothing could start before the budget is raised. Source: docs/decisions/0048.
 */
const sleepsOnBudget = ({ session, fact }: ObservedSession, pod: ObservedPod | undefined): boolean =>
  session.spec.limits?.onReached === 'Suspend' &&
  fact?.budgetReached === true &&
  (pod === undefined || (fact.podUid === pod.uid && fact.activity?.state === 'Idle'));

const projectIsGone = (o: ObservedSession): boolean => {
  if (o.project !== undefined) return false;
  const accepted = findCondition(o.session.status?.conditions ?? [], 'SpecAccepted');
  const sinceMs = accepted?.reason === 'ProjectNotFound' ? timeMs(accepted.lastTransitionTime) : undefined;
  return sinceMs !== undefined && o.now - sinceMs >= PROJECT_GONE_MS;
};

/** Whether the restart token asks for another pod, or (without a pod) for another start. */
export const asksRestart = (o: ObservedSession, pod: ObservedPod | undefined): boolean => {
  const answered = pod === undefined ? o.session.status?.observedRestartToken : pod.restartToken;
  return (o.session.spec.restartToken ?? '') !== (answered ?? '');
};

/** What the Session should be now. `pod` is its current pod. First match wins. */
export const intentOf = (o: ObservedSession, pod: ObservedPod | undefined): Intent => {
  const { session, project } = o;
  if (session.status?.finishedAt !== undefined) {
    return { kind: 'finished', outcome: storedOutcome(o), isNew: false, failure: undefined };
  }
  const end = newEnd(o);
  if (end !== undefined) return end;
  if (session.spec.operatingMode === 'Suspended') return { kind: 'suspend', reason: 'Requested' };
  if (project?.spec.operatingMode === 'Suspended') return { kind: 'suspend', reason: 'ProjectSuspended' };
  const hasStarted = pod !== undefined || session.status?.suspension?.reason === 'ProjectSuspended';
  if (hasStarted && projectIsGone(o)) return { kind: 'suspend', reason: 'ProjectSuspended' };
  if (pod === undefined && sleepsOnBudget(o, pod)) return { kind: 'suspend', reason: 'Budget' };
  const asleep = pod === undefined && !asksRestart(o, pod) ? staysAsleep(o) : undefined;
  if (asleep !== undefined) return { kind: 'suspend', reason: asleep };
  if (pod !== undefined && asksRestart(o, pod)) return { kind: 'restart' };
  return pod !== undefined && sleepsOnBudget(o, pod) ? { kind: 'suspend', reason: 'Budget' } : { kind: 'run' };
};

/** Time until something here changes by itself. Units: milliseconds; undefined: it does not. */
export const lifecycleRecheckMs = (o: ObservedSession): number | undefined => {
  if (o.session.status?.finishedAt !== undefined) return undefined;
  const expires = expiresAtMs(o);
  const wishes = [
    expires === undefined ? undefined : expires - o.now,
    o.project === undefined ? PROJECT_GONE_MS : undefined,
  ].filter((ms) => ms !== undefined);
  return wishes.length === 0 ? undefined : Math.max(0, Math.min(...wishes));
};
