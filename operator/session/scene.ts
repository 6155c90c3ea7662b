// One pass over a Session, half way: which pod is current, what should be, what failed, which gate is closed. Pure.
// plan.ts turns it into actions, conditions.ts and status.ts into what people see. Source: 10-kubernetes §4, K15.
import type { ConditionNote } from '#kube/conditions.ts';
import type { SessionStatus } from '#schema/resources/session.ts';
import { timeMs } from '../runtime/time.ts';
import { specAccepted } from './accept.ts';
import { chooseStart, type StartChoice } from './choose-start.ts';
import { type Daemon, daemonNote, daemonOf, isRuntimeReady } from './daemon.ts';
import { effectiveLifecycle } from './effective.ts';
import { type Failure, FORGET_AFTER_READY_MS, isBlocked, isDisruption, isPausing, recordFailure } from './failures.ts';
import { type Gate, startGate } from './gates.ts';
import { asksRestart, type Intent, intentOf } from './lifecycle.ts';
import type { ObservedPod, ObservedSession } from './observed.ts';
import { type FailureSign, failureOf, isGated, isRunning, pendingCategory } from './pod-signs.ts';

/** What a pass found. */
export type Scene = Readonly<{
  o: ObservedSession;
  stored: SessionStatus;
  /** The pod that belongs to the Session: bound, or of a new attempt and bound by this pass. */
  current: ObservedPod | undefined;
  isNewPod: boolean;
  /** Pods of ended attempts that are still there. */
  leftovers: readonly ObservedPod[];
  intent: Intent;
  /** The current pod must go: asked for in the stored status, or wanted now. */
  stopping: boolean;
  /** What failed in this pass. */
  lost: FailureSign | undefined;
  /** `status.failure` after this pass. */
  failure: Failure | undefined;
  accepted: ConditionNote;
  daemon: Daemon;
  /** K13 holds. */
  ready: boolean;
  /** Of a Session that should run and has no pod. */
  gate: Gate | undefined;
  choice: StartChoice | undefined;
}>;

/** The clock base of the start deadline. Units: milliseconds since 1970. */
const startedMs = (scene: Pick<Scene, 'o' | 'stored' | 'isNewPod'>, pod: ObservedPod): number =>
  (scene.isNewPod ? undefined : timeMs(scene.stored.startedAt)) ?? pod.createdMs;

const wasGated = (stored: SessionStatus): boolean =>
  stored.conditions?.some(({ type, reason }) => type === 'SandboxReady' && reason === 'SchedulingGated') === true;

/** When the start must have succeeded. Units: milliseconds since 1970; undefined while the clock stands still or is over. */
export const startDeadlineMs = (
  scene: Pick<Scene, 'o' | 'stored' | 'isNewPod' | 'ready'>,
  pod: ObservedPod,
): number | undefined => {
  const becameReady = !scene.isNewPod && scene.stored.readyAt !== undefined;
  if (scene.ready || becameReady || isGated(pod) || wasGated(scene.stored)) return undefined;
  const { startDeadlineSeconds } = effectiveLifecycle(scene.o.session, scene.o.project, scene.o.installation);
  return startedMs(scene, pod) + startDeadlineSeconds * 1_000;
};

const currentOf = (o: ObservedSession, stored: SessionStatus) => {
  const attempt = stored.pod?.attempt ?? 0;
  const newest = o.pods.filter((pod) => pod.attempt > attempt).sort((a, b) => b.attempt - a.attempt)[0];
  const current = newest ?? o.pods.find((pod) => pod.uid === stored.pod?.uid);
  return { current, isNewPod: newest !== undefined, leftovers: o.pods.filter((pod) => pod !== current) };
};

/** The failure that earlier passes left, if it still counts. `pod` is undefined for one that is bound by this pass. */
const remaining = (
  o: ObservedSession,
  stored: SessionStatus,
  intent: Intent,
  pod: ObservedPod | undefined,
  ready: boolean,
): Failure | undefined => {
  const { failure } = stored;
  if (failure === undefined || intent.kind === 'finished') return failure;
  if (asksRestart(o, pod)) return undefined;
  if (isBlocked(failure) && !isPausing(failure, o.now) && intent.kind === 'run') {
    const resumed = stored.suspension?.reason === 'Requested';
    if (resumed || (o.controlPlane.state === 'available' && o.fact?.wanted === true)) return undefined;
  }
  const readySinceMs = stored.conditions?.find(({ type, status }) => type === 'Ready' && status === 'True');
  const since = timeMs(readySinceMs?.lastTransitionTime);
  if (ready && since !== undefined && o.now - since >= FORGET_AFTER_READY_MS) return undefined;
  const turn = o.fact?.lastTurn;
  const completed =
    turn?.outcome === 'Succeeded' && turn.final && (timeMs(turn.finishedAt) ?? 0) > (timeMs(failure.since) ?? 0);
  return completed && !isDisruption(failure) ? undefined : failure;
};

const lossOf = (
  o: ObservedSession,
  stored: SessionStatus,
  scene: Pick<Scene, 'current' | 'isNewPod' | 'intent' | 'daemon' | 'ready'> & Readonly<{ asked: boolean }>,
): FailureSign | undefined => {
  const { current, intent, asked, daemon } = scene;
  if (intent.kind !== 'run' || asked) return undefined;
  if (current === undefined) {
    const vanished = stored.pod?.uid !== undefined && !o.unseen.pod;
    return vanished ? { category: 'DaemonExit', message: `pod ${stored.pod?.name ?? ''} is gone` } : undefined;
  }
  const ended = failureOf(current);
  if (ended !== undefined) return ended;
  const deadline = startDeadlineMs({ o, stored, ...scene }, current);
  if (deadline === undefined || o.now < deadline || o.controlPlane.state !== 'available') return undefined;
  const health = daemon.state === 'answering' || daemon.state === 'silent' ? daemon.health : undefined;
  const boot = { category: health?.bootErrorCategory ?? null, error: health?.bootError ?? null };
  return pendingCategory(current, o.volume, boot);
};

const K13_NOTES = ['WorkspaceReady', 'HarnessReady', 'ConfigApplied'] as const;

/** K13, for the current pod. */
const isReady = (o: ObservedSession, pod: ObservedPod | undefined, accepted: ConditionNote, daemon: Daemon): boolean =>
  pod !== undefined &&
  accepted.status === 'True' &&
  isRunning(pod) &&
  pod.ready?.status === 'True' &&
  isRuntimeReady(daemon) &&
  K13_NOTES.every((type) => daemonNote(type, o, daemon).status === 'True');

/** Looks at a Session that is not being deleted. */
export const sceneOf = (o: ObservedSession): Scene => {
  const stored = o.session.status ?? {};
  const { current, isNewPod, leftovers } = currentOf(o, stored);
  const intent = intentOf(o, current);
  const boundUid = stored.pod?.uid;
  const asked = stored.phase === 'Stopping' && boundUid !== undefined && (current?.uid ?? boundUid) === boundUid;
  const stopping = current !== undefined && (asked || intent.kind !== 'run');
  const accepted = intent.kind === 'finished' && !intent.isNew ? storedAccepted(o) : specAccepted(o);
  const daemon = daemonOf(o, current);
  const ready = !stopping && isReady(o, current, accepted, daemon);
  const base = { current, isNewPod, intent, stopping, daemon, ready };
  const lost = lossOf(o, stored, { ...base, asked });
  const before = remaining(o, stored, intent, isNewPod ? undefined : current, ready);
  const end = intent.kind === 'finished' && intent.isNew ? intent : undefined;
  const sign = lost ?? end?.failure;
  const failure =
    sign !== undefined
      ? recordFailure(before, sign, o.now)
      : end !== undefined && end.outcome !== 'Failed'
        ? undefined
        : before;
  const podIsOver = lost !== undefined || current === undefined;
  return {
    o,
    stored,
    ...base,
    lost,
    failure,
    // A pod that failed is no longer the Session's: it is only cleaned away.
    current: lost === undefined ? current : undefined,
    isNewPod: lost === undefined && isNewPod,
    leftovers: lost === undefined || current === undefined ? leftovers : [...leftovers, current],
    accepted,
    daemon: lost === undefined ? daemon : { state: 'none' },
    ready: ready && lost === undefined,
    gate: podIsOver && intent.kind === 'run' && !stopping ? startGate(o, accepted, failure) : undefined,
    choice:
      o.project === undefined
        ? undefined
        : chooseStart({
            session: o.session,
            project: o.project,
            projectFact: o.projectFact,
            volume: o.volume,
            installation: o.installation,
          }),
  };
};

const storedAccepted = (o: ObservedSession): ConditionNote =>
  o.session.status?.conditions?.find(({ type }) => type === 'SpecAccepted') ?? specAccepted(o);
