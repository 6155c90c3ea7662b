// The steps that end an attempt: fence it, give its turn time, delete the pod, say that it is gone. Pure.
// Must not know why it ends beyond the intent. Source: 10-kubernetes §4 (suspend, restart, finish), D17.
import type { SessionAction } from './actions.ts';
import type { ObservedPod, ObservedSession } from './observed.ts';
import type { Scene } from './scene.ts';

/** What a stop does now and when it looks again. */
export type StopStep = Readonly<{ actions: readonly SessionAction[]; recheckAfterMs: number | undefined }>;

/** Time that an aborted turn gets to end cleanly. Units: seconds. */
export const ABORT_SECONDS = 30;
/** So long after its deadline a drain is no longer waited for. Units: milliseconds. */
const OVERTIME_MS = 5_000;
const LOOK_AGAIN_MS = 5_000;

const NOTHING: StopStep = { actions: [], recheckAfterMs: undefined };

const hasEnded = (pod: ObservedPod): boolean =>
  pod.phase === 'Failed' || pod.phase === 'Succeeded' || pod.container?.state === 'terminated';

const reasonOf = ({ intent }: Scene): string => {
  if (intent.kind === 'suspend') return `suspend-${intent.reason}`;
  return intent.kind === 'finished' ? `finish-${intent.outcome}` : 'restart';
};

/**
 * The next step for the current pod. The status says Stopping before anything is done, so that a pod that then ends is
 * known to have been asked to.
 */
export const stopStep = (scene: Scene): StopStep => {
  const { o, current, stored, intent } = scene;
  if (current === undefined || current.deleting || stored.phase !== 'Stopping') return NOTHING;
  if (stored.pod?.uid !== current.uid) return NOTHING;
  const remove: SessionAction = { kind: 'deletePod', name: current.name, uid: current.uid };
  if (o.controlPlane.state !== 'available' || hasEnded(current))
    return { actions: [remove], recheckAfterMs: undefined };
  const waits = intent.kind === 'restart' || intent.kind === 'run';
  const deadlineSeconds = waits ? o.installation.sandbox.drainSeconds : ABORT_SECONDS;
  if (o.stop?.podUid !== current.uid) {
    const { uid, attempt } = current;
    const turn = waits ? 'wait' : 'abort';
    return {
      actions: [{ kind: 'stopSession', podUid: uid, attempt, reason: reasonOf(scene), turn, deadlineSeconds }],
      recheckAfterMs: 0,
    };
  }
  const leftMs = deadlineSeconds * 1_000 + OVERTIME_MS - o.stop.askedAgoMs;
  const idle =
    o.fact?.podUid === current.uid && o.fact.fencedPodUid === current.uid && o.fact.activity?.state === 'Idle';
  if (o.stop.state === 'stopped' || idle || leftMs <= 0) return { actions: [remove], recheckAfterMs: undefined };
  return { actions: [], recheckAfterMs: Math.min(LOOK_AGAIN_MS, leftMs) };
};

/** Pods of ended attempts are deleted; each once. */
export const leftoverActions = (leftovers: readonly ObservedPod[]): SessionAction[] =>
  leftovers.filter((pod) => !pod.deleting).map(({ name, uid }) => ({ kind: 'deletePod', name, uid }));

/** The control plane hears of each pod that is gone, so that its open turn gets its end. */
export const goneActions = (o: ObservedSession, reason: string): SessionAction[] => {
  if (o.controlPlane.state !== 'available' || o.unseen.pod) return [];
  const known = [o.session.status?.pod?.uid, o.fact?.podUid ?? undefined].filter((uid) => uid !== undefined);
  return [...new Set(known)]
    .filter((uid) => !o.pods.some((pod) => pod.uid === uid) && !o.reportedGone.includes(uid))
    .map((podUid) => ({ kind: 'reportPodGone', podUid, reason }));
};
