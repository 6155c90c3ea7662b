// The plan of a Session: composes scene, steps and status. Pure, synchronous, total.
// Must not know clients, clocks or logs. Source: 10-kubernetes §4, §5.
import type { SessionStatus } from '#schema/resources/session.ts';
import type { FailureAnswer, Plan } from '../runtime/controller.ts';
import { timeMs } from '../runtime/time.ts';
import type { SessionAction } from './actions.ts';
import { planDeletion } from './deletion.ts';
import { effectiveLifecycle } from './effective.ts';
import { FORGET_AFTER_READY_MS, recordFailure } from './failures.ts';
import { lifecycleRecheckMs } from './lifecycle.ts';
import { sessionNotes } from './notes.ts';
import type { ObservedSession } from './observed.ts';
import { type Scene, sceneOf, startDeadlineMs } from './scene.ts';
import { policyActions, startActions } from './start.ts';
import { sessionStatus } from './status.ts';
import { goneActions, leftoverActions, stopStep } from './stop.ts';

/** A plan of this controller. */
export type SessionPlan = Plan<SessionAction, SessionStatus>;

/** Two readings so far apart before anything is deleted for its age. Units: milliseconds. Source: K20. */
const SECOND_READING_MS = 60_000;

/** A deadline that cannot be judged now, as the control plane is away, is looked at again. Units: milliseconds. */
const OVERDUE_LOOK_MS = 30_000;

type Step = Readonly<{
  actions: readonly SessionAction[];
  recheckAfterMs?: number | undefined;
  inTransit?: boolean | undefined;
}>;

const releaseSlot = (o: ObservedSession): SessionAction[] => (o.slot.state === 'none' ? [] : [{ kind: 'releaseSlot' }]);

/** Deletes a finished Session when its time is over. A TTL of 0 compares no times, so it needs no second reading. */
const ttlStep = (scene: Scene): Step => {
  const { o, stored } = scene;
  const ttl = effectiveLifecycle(o.session, o.project, o.installation).ttlSecondsAfterFinished;
  const finishedMs = timeMs(stored.finishedAt);
  const isOver = stored.conditions?.some(({ type, status }) => type === 'Finished' && status === 'True');
  if (ttl === undefined || finishedMs === undefined || isOver !== true) return { actions: [] };
  if (ttl === 0) return { actions: [{ kind: 'deleteSession' }] };
  const leftMs = finishedMs + ttl * 1_000 - o.now;
  if (leftMs > 0) {
    return { actions: o.dueForDeletionMs === undefined ? [] : [{ kind: 'forgetDue' }], recheckAfterMs: leftMs };
  }
  if (o.dueForDeletionMs === undefined) return { actions: [{ kind: 'noteDue' }], recheckAfterMs: SECOND_READING_MS };
  const waitMs = SECOND_READING_MS - o.dueForDeletionMs;
  return waitMs > 0 ? { actions: [], recheckAfterMs: waitMs } : { actions: [{ kind: 'deleteSession' }] };
};

/** What is done for a Session without a current pod. What failed in this pass is written down before anything is done. */
const withoutPod = (scene: Scene): Step => {
  const { o, intent, leftovers, gate, lost } = scene;
  if (lost !== undefined) return { actions: [] };
  if (leftovers.length > 0 || o.unseen.pod) {
    return { actions: leftoverActions(leftovers), inTransit: gate !== undefined && gate.kind !== 'closed' };
  }
  if (intent.kind === 'finished') return ttlStep(scene);
  switch (gate?.kind) {
    case 'needs-slot':
      return { actions: [{ kind: 'requestSlot' }], recheckAfterMs: 0, inTransit: true };
    case 'open': {
      const actions = startActions(scene);
      const again = actions.some(({ kind }) => kind === 'ensureServiceAccount');
      return { actions, inTransit: true, recheckAfterMs: again ? 0 : undefined };
    }
    case 'closed': {
      const actions = gate.reason === 'Queued' ? [] : releaseSlot(o);
      return { actions, recheckAfterMs: gate.recheckAfterMs, inTransit: o.controlPlane.state === 'connecting' };
    }
    default:
      return { actions: releaseSlot(o) };
  }
};

const stepOf = (scene: Scene): Step => {
  const { o, current, stopping } = scene;
  if (current === undefined) return withoutPod(scene);
  const leftovers = leftoverActions(scene.leftovers);
  if (stopping) {
    const stop = stopStep(scene);
    return { actions: [...leftovers, ...stop.actions], recheckAfterMs: stop.recheckAfterMs };
  }
  const deadline = startDeadlineMs(scene, current);
  if (deadline === undefined) return { actions: leftovers };
  const leftMs = deadline - o.now;
  return { actions: leftovers, recheckAfterMs: leftMs > 0 ? leftMs : OVERDUE_LOOK_MS };
};

const earliest = (...wishes: readonly (number | undefined)[]): number | undefined => {
  const real = wishes.filter((wish) => wish !== undefined);
  return real.length === 0 ? undefined : Math.min(...real);
};

/** When a failure is forgotten for being Ready long enough. */
const forgetRecheckMs = ({ o, stored, ready, failure }: Scene): number | undefined => {
  const since = timeMs(
    stored.conditions?.find(({ type, status }) => type === 'Ready' && status === 'True')?.lastTransitionTime,
  );
  return failure === undefined || !ready || since === undefined
    ? undefined
    : Math.max(0, since + FORGET_AFTER_READY_MS - o.now);
};

const guardedPolicy = (scene: Scene): SessionAction[] => {
  const { o, stored, intent } = scene;
  const hasStarted = scene.current !== undefined || (stored.pod?.attempt ?? 0) > 0;
  return hasStarted && intent.kind !== 'finished' ? policyActions(o) : [];
};

/** Actions, status and events for what was observed. A converged Session has no actions and the status that it has. */
export const planSession = (o: ObservedSession): SessionPlan => {
  if (o.session.metadata.deletionTimestamp !== undefined) return planDeletion(o);
  const scene = sceneOf(o);
  const step = stepOf(scene);
  const isStarting = step.actions.some(({ kind }) => kind === 'applyNetworkPolicy' || kind === 'createPod');
  const status = sessionStatus(scene);
  return {
    actions: [
      ...goneActions(o, scene.lost?.category ?? scene.intent.kind),
      ...(isStarting ? [] : guardedPolicy(scene)),
      ...step.actions,
    ],
    status,
    inTransit: step.inTransit === true,
    events: sessionNotes(scene, status),
    recheckAfterMs: earliest(step.recheckAfterMs, lifecycleRecheckMs(o), forgetRecheckMs(scene)),
  };
};

/** What the server or a foreign object refused, as a failed start that cools down; undefined: try again. */
export const sessionFailure = (
  o: ObservedSession,
  action: SessionAction,
  code: string,
  message: string,
): FailureAnswer<SessionStatus> | undefined => {
  const creates = action.kind === 'createPod' || action.kind === 'createVolume' || action.kind === 'applyNetworkPolicy';
  const category =
    code === 'already_exists'
      ? 'NameTaken'
      : code === 'forbidden' || code === 'resource_rejected'
        ? 'Rejected'
        : undefined;
  if (!creates || category === undefined || o.session.metadata.deletionTimestamp !== undefined) return undefined;
  const scene = sceneOf(o);
  const sign = { category, message } as const;
  const failure = recordFailure(scene.failure, sign, o.now);
  // Only the stored status is changed: gates and conditions then follow from it as in every other pass.
  const answered: ObservedSession = {
    ...o,
    session: {
      ...o.session,
      status: { ...o.session.status, failure, observedRestartToken: o.session.spec.restartToken },
    },
  };
  const after = sceneOf(answered);
  const status = { ...sessionStatus(after), observedRestartToken: o.session.spec.restartToken };
  const note = `${category}: ${message}`;
  return {
    status,
    events: [{ type: 'Warning', reason: 'StartFailed', action: 'Start', note }],
    recheckAfterMs: Math.max(0, (timeMs(failure.nextRetryTime) ?? o.now) - o.now) + 1,
  };
};
