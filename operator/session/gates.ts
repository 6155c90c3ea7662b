// The gates that a wanted Session passes before its sandbox is made, in order. Pure. Must not know pods.
// Source: 10-kubernetes §4, start gates.
import type { ConditionNote } from '#kube/conditions.ts';
import { timestamp } from '../runtime/time.ts';
import { type Failure, failureSentence, isBlocked, isDisruption, isPausing } from './failures.ts';
import type { ObservedSession } from './observed.ts';

/** The first closed gate, as reason and message of Ready; or that a place is to be asked for; or that all are open. */
export type Gate =
  | Readonly<{ kind: 'closed'; reason: string; message: string; recheckAfterMs?: number | undefined }>
  | Readonly<{ kind: 'needs-slot' }>
  | Readonly<{ kind: 'open' }>;

const closed = (reason: string, message: string, recheckAfterMs?: number): Gate => ({
  kind: 'closed',
  reason,
  message,
  recheckAfterMs,
});

const QUEUED = {
  ProjectRunning: 'the Project runs as many sandboxes as spec.limits.maxRunning allows',
  InstallationRunning: 'the installation runs as many sandboxes as it allows',
  Starts: 'as many sandboxes start at present as may start at once',
} as const;

/** What is said of a Session whose own budget is used up: what of it, and what to do. */
export const BUDGET_USED_UP = 'the budget of the Session is used up; raise spec.limits.budgetMicroUSD to let it go on';

const pause = (failure: Failure, now: number): Gate => {
  const at = failure.nextRetryTime ?? timestamp(now);
  const waitMs = Math.max(0, Date.parse(at) - now) + 1;
  return isDisruption(failure)
    ? closed('Disrupted', `${failureSentence(failure)}; next start ${at}`, waitMs)
    : closed('CoolingDown', `${failureSentence(failure)}; next try ${at}, or change spec.restartToken`, waitMs);
};

/** The gate of a Session that should run and has no pod. `failure` is what is left of earlier tries. */
export const startGate = (o: ObservedSession, accepted: ConditionNote, failure: Failure | undefined): Gate => {
  if (o.controlPlane.state !== 'available' && accepted.status !== 'False') {
    if (failure !== undefined && isBlocked(failure)) return closed('Failed', failureSentence(failure));
    return closed('Pending', 'waiting for the control plane');
  }
  if (accepted.status !== 'True') return closed('NotAccepted', `${accepted.reason}: ${accepted.message}`);
  if (failure !== undefined && isBlocked(failure)) {
    const when = failure.nextRetryTime ?? timestamp(o.now);
    return closed('Failed', `${failureSentence(failure)}; a prompt after ${when} or spec.restartToken starts it again`);
  }
  if (o.projectFact?.budget.reached === true) return closed('BudgetReached', o.projectFact.budget.message);
  if (o.fact?.budgetReached === true) return closed('BudgetReached', BUDGET_USED_UP);
  if (o.slot.state === 'waiting') return closed('Queued', QUEUED[o.slot.because]);
  if (failure !== undefined && isPausing(failure, o.now)) return pause(failure, o.now);
  return o.slot.state === 'granted' ? { kind: 'open' } : { kind: 'needs-slot' };
};
