// The finalizer of a Session: five steps, each idempotent, and after five minutes it goes whatever happened. Pure.
// Source: 10-kubernetes §4, Delete; FA17.
import { setConditions } from '#kube/conditions.ts';
import { FINALIZERS } from '#kube/names.ts';
import type { SessionStatus } from '#schema/resources/session.ts';
import type { Plan } from '../runtime/controller.ts';
import { timeMs, timestamp } from '../runtime/time.ts';
import type { SessionAction } from './actions.ts';
import { sessionConditions } from './conditions.ts';
import type { ObservedSession } from './observed.ts';
import { type Scene, sceneOf } from './scene.ts';
import { sessionStatus } from './status.ts';
import { ABORT_SECONDS } from './stop.ts';

type SessionPlan = Plan<SessionAction, SessionStatus>;

/** So long after the delete the finalizer goes. Units: milliseconds. */
export const CLEANUP_LIMIT_MS = 300_000;
/** Grace of the pod of a deleted Session. Units: seconds. */
const GRACE_SECONDS = 30;

const NOTHING: SessionPlan = {
  actions: [],
  status: undefined,
  inTransit: false,
  events: [],
  recheckAfterMs: undefined,
};

/** The status of a Session that waits for its own clean-up; `step` is what it waits for. */
const deletingStatus = (scene: Scene, step: string): SessionStatus => {
  const { o, stored } = scene;
  const { generation } = o.session.metadata;
  const notes = sessionConditions(scene).map((note) =>
    note.type === 'Ready' ? { ...note, status: 'False' as const, reason: 'Deleting', message: step } : note,
  );
  const bound = stored.pod !== undefined && o.pods.some((pod) => pod.uid === stored.pod?.uid);
  return {
    ...sessionStatus(scene),
    phase: 'Deleting',
    pod: bound ? stored.pod : stored.pod && { attempt: stored.pod.attempt },
    failure: stored.failure,
    finishedAt: stored.finishedAt,
    suspension: stored.suspension,
    conditions: setConditions(stored.conditions ?? [], notes, generation, timestamp(o.now)),
  };
};

/** Steps 1 and 2: fence and abort, then delete the pod. */
const removePods = (o: ObservedSession): SessionAction[] => {
  const bound = o.pods.find((pod) => pod.uid === o.session.status?.pod?.uid);
  const fence: SessionAction[] =
    bound === undefined || bound.deleting || o.controlPlane.state !== 'available' || o.stop?.podUid === bound.uid
      ? []
      : [
          {
            kind: 'stopSession',
            podUid: bound.uid,
            attempt: bound.attempt,
            reason: 'delete',
            turn: 'abort',
            deadlineSeconds: ABORT_SECONDS,
          },
        ];
  const deletes = o.pods
    .filter((pod) => !pod.deleting)
    .map(({ name, uid }): SessionAction => ({ kind: 'deletePod', name, uid, graceSeconds: GRACE_SECONDS }));
  return [...fence, ...deletes];
};

/** Steps 3 to 5: close at the control plane, keep the volume if it is retained, let go. */
const letGo = (o: ObservedSession): SessionAction[] => {
  const { volume } = o;
  const keep: SessionAction[] =
    volume === undefined || !volume.retain || volume.retained
      ? []
      : [{ kind: 'retainVolume', name: volume.name, uid: volume.uid }];
  return [{ kind: 'closeSession', reason: 'deleted' }, ...keep, { kind: 'releaseFinalizer' }];
};

/** The plan of a Session with a deletion timestamp. */
export const planDeletion = (o: ObservedSession): SessionPlan => {
  const { metadata } = o.session;
  if (!metadata.finalizers.includes(FINALIZERS.session)) return NOTHING;
  const limitMs = (timeMs(metadata.deletionTimestamp) ?? o.now) + CLEANUP_LIMIT_MS;
  if (o.now >= limitMs) {
    const note = 'the clean-up did not end within 5 minutes; garbage collection takes what is left';
    return {
      ...NOTHING,
      actions: [{ kind: 'releaseFinalizer' }],
      events: [{ type: 'Warning', reason: 'CleanupTimedOut', action: 'Cleanup', note }],
    };
  }
  const recheckAfterMs = limitMs - o.now;
  const waits = (step: string, actions: readonly SessionAction[]): SessionPlan => ({
    ...NOTHING,
    actions,
    status: deletingStatus(sceneOf(o), step),
    recheckAfterMs,
  });
  if (o.pods.length > 0 || o.unseen.pod) {
    const name = o.pods[0]?.name ?? 'that was just made';
    return waits(`step 2 of 5: waiting for pod ${name} to end`, removePods(o));
  }
  if (o.controlPlane.state === 'down') {
    return waits('step 3 of 5: waiting for the control plane to close the session', []);
  }
  return { ...NOTHING, actions: letGo(o), recheckAfterMs };
};
