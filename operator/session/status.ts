// The whole status of a Session from one scene: from what is seen alone, never from what was just asked for. Pure.
// Must not know how or when it is written. Source: 10-kubernetes §3.
import { setConditions } from '#kube/conditions.ts';
import { childName } from '#kube/names.ts';
import type { SessionPhase, SessionStatus } from '#schema/resources/session.ts';
import { timestamp } from '../runtime/time.ts';
import { sessionConditions } from './conditions.ts';
import { branchOf, type Daemon } from './daemon.ts';
import { podHash } from './desired-pod.ts';
import { sessionAgent, sessionModel } from './effective.ts';
import { isBlocked } from './failures.ts';
import { expiresAtMs } from './lifecycle.ts';
import { isGated } from './pod-signs.ts';
import type { Scene } from './scene.ts';

/** The phase that the scene amounts to. Source: 10-kubernetes §4. */
export const phaseOf = (scene: Scene): SessionPhase => {
  const { current, stopping, intent, leftovers, ready, stored, failure } = scene;
  if (current !== undefined) {
    if (stopping) return 'Stopping';
    return ready || (!scene.isNewPod && stored.readyAt !== undefined) ? 'Running' : 'Starting';
  }
  if (intent.kind === 'finished') return leftovers.length > 0 ? 'Stopping' : intent.outcome;
  if (intent.kind === 'suspend') return leftovers.length > 0 ? 'Stopping' : 'Suspended';
  return isBlocked(failure) ? 'Failed' : 'Pending';
};

const podStatus = (scene: Scene): SessionStatus['pod'] => {
  const { current, stored, o, choice } = scene;
  if (current === undefined) {
    const attempt = Math.max(stored.pod?.attempt ?? 0, ...o.pods.map((pod) => pod.attempt));
    return attempt === 0 ? undefined : { attempt };
  }
  const { session, project, installation, version } = o;
  const now =
    project === undefined || choice === undefined
      ? undefined
      : podHash({ session, project, choice, installation, version });
  const isCurrent = now === undefined || current.hash === undefined ? stored.pod?.current : now === current.hash;
  return {
    name: current.name,
    uid: current.uid,
    attempt: current.attempt,
    node: current.node,
    ip: current.ip,
    imageID: current.imageID,
    hash: current.hash,
    current: isCurrent,
    runtimeClassName: current.runtimeClassName,
    userNamespace: current.userNamespace,
  };
};

const harnessStatus = (scene: Scene): SessionStatus['harness'] => {
  const { current, stored, daemon } = scene;
  if (current === undefined) return stored.harness;
  const reported = daemon.state === 'answering' || daemon.state === 'silent' ? daemon.health : undefined;
  const before = scene.isNewPod ? undefined : stored.harness;
  const capabilities = reported === undefined ? before?.capabilities : [...new Set(reported.capabilities)];
  return {
    id: current.harness,
    version: reported === undefined ? before?.version : (reported.harness.version ?? undefined),
    reason: current.harnessReason,
    image: current.image,
    capabilities,
  };
};

const SHORT = 12;

const configStatus = (daemon: Daemon, before: SessionStatus['config']): SessionStatus['config'] => {
  if (daemon.state === 'none' || daemon.state === 'waiting') return undefined;
  if (daemon.state !== 'answering') return before;
  const { config } = daemon.health;
  return {
    releaseId: config.release_id ?? undefined,
    short: config.release_id?.slice(0, SHORT),
    desiredReleaseId: config.desired_release_id ?? undefined,
    source: config.source,
    proven: config.proven,
    fallbackReason: config.fallback_reason ?? undefined,
    failedReleaseId: config.failed_release_id ?? undefined,
  };
};

/** Whole seconds, as all times of a status. */
const seconds = (time: string): string => timestamp(Date.parse(time));

const activityStatus = (daemon: Daemon, before: SessionStatus['activity']): SessionStatus['activity'] => {
  if (daemon.state === 'none' || daemon.state === 'waiting') return undefined;
  const activity = daemon.state === 'answering' ? daemon.fact.activity : null;
  return activity === null
    ? before
    : { state: activity.state, since: seconds(activity.since), turnId: activity.turnId ?? undefined };
};

const healthStatus = (daemon: Daemon, before: SessionStatus['health']): SessionStatus['health'] => {
  switch (daemon.state) {
    case 'none':
    case 'waiting':
      return undefined;
    case 'keep':
      return before;
    case 'answering':
      return { state: 'Answering' };
    case 'silent':
      return { state: 'Silent', lastAnswerTime: seconds(daemon.health.lastAnswerAt) };
    case 'down':
      return {
        state: 'Unknown',
        lastAnswerTime: daemon.lastAnswerAt === undefined ? before?.lastAnswerTime : seconds(daemon.lastAnswerAt),
      };
  }
};

const workspaceStatus = (scene: Scene): SessionStatus['workspace'] => {
  const { o, daemon, stored } = scene;
  const health = daemon.state === 'answering' || daemon.state === 'silent' ? daemon.health : undefined;
  const commit = health?.commit ?? stored.workspace?.commit;
  return {
    claimName: o.volume === undefined ? undefined : childName(o.session.metadata.name, o.session.metadata.uid),
    branch: branchOf(o.session),
    commit: commit ?? undefined,
  };
};

const lastTurnStatus = (scene: Scene): SessionStatus['lastTurn'] => {
  const turn = scene.o.fact?.lastTurn;
  if (turn === undefined || turn === null || !turn.final) return scene.stored.lastTurn;
  return {
    id: turn.id,
    outcome: turn.outcome,
    startedAt: seconds(turn.startedAt),
    finishedAt: seconds(turn.finishedAt),
    summary: turn.summary ?? undefined,
  };
};

const suspensionStatus = ({ intent, stored, o }: Scene): SessionStatus['suspension'] => {
  if (intent.kind !== 'suspend') return undefined;
  const since = stored.suspension?.reason === intent.reason ? stored.suspension.since : timestamp(o.now);
  return { reason: intent.reason, since };
};

/** The token that the last start, or the clearing of a failure, answered. */
const observedRestartToken = ({ o, stored, current, intent }: Scene): string | undefined => {
  if (current !== undefined) return current.restartToken;
  return intent.kind === 'suspend' && intent.reason === 'Requested'
    ? o.session.spec.restartToken
    : stored.observedRestartToken;
};

const startedAt = ({ current, isNewPod, stored, o }: Scene): string | undefined => {
  if (current === undefined) return stored.startedAt;
  if (isNewPod || stored.startedAt === undefined) return timestamp(current.createdMs);
  const wasGated = stored.conditions?.some(
    ({ type, reason }) => type === 'SandboxReady' && reason === 'SchedulingGated',
  );
  return wasGated && !isGated(current) ? timestamp(o.now) : stored.startedAt;
};

const readyAt = ({ current, isNewPod, stored, ready, o }: Scene): string | undefined => {
  if (current === undefined) return stored.readyAt;
  return (isNewPod ? undefined : stored.readyAt) ?? (ready ? timestamp(o.now) : undefined);
};

const agentAndModel = ({ o, stored }: Scene): Pick<SessionStatus, 'agent' | 'model'> => {
  const { session, project, projectFact } = o;
  const manifest = projectFact?.manifest.lastValid;
  if (project === undefined || projectFact === undefined || manifest === undefined || manifest === null) {
    return { agent: stored.agent, model: stored.model };
  }
  const agent = sessionAgent(session, project, manifest);
  const model = sessionModel(session, project, projectFact, o.registry, agent.value);
  return {
    agent: { name: agent.value, source: agent.layer },
    model: model && { name: model.value, source: model.layer },
  };
};

/** The status of a Session that is not being deleted. */
export const sessionStatus = (scene: Scene): SessionStatus => {
  const { o, stored, daemon, intent, failure } = scene;
  const { generation } = o.session.metadata;
  const now = timestamp(o.now);
  const expires = expiresAtMs(o);
  return {
    observedGeneration: generation,
    observedRestartToken: observedRestartToken(scene),
    phase: phaseOf(scene),
    harness: harnessStatus(scene),
    ...agentAndModel(scene),
    config: configStatus(daemon, stored.config),
    pod: podStatus(scene),
    generation: o.fact === undefined || o.fact.generation === 0 ? stored.generation : o.fact.generation,
    workspace: workspaceStatus(scene),
    activity: activityStatus(daemon, stored.activity),
    suspension: suspensionStatus(scene),
    failure,
    lastTurn: lastTurnStatus(scene),
    health: healthStatus(daemon, stored.health),
    startedAt: startedAt(scene),
    readyAt: readyAt(scene),
    finishedAt: stored.finishedAt ?? (intent.kind === 'finished' ? now : undefined),
    expiresAt: expires === undefined ? undefined : timestamp(expires),
    conditions: setConditions(stored.conditions ?? [], sessionConditions(scene), generation, now),
  };
};
