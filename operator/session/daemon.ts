// What the facts say about the daemon of the current pod: workspace, harness, configuration, activity. Pure.
// A pod phase is never taken for readiness (D16); what cannot be known is Unknown. Source: 10-kubernetes §3, K13, K14.
import { type ConditionNote, findCondition } from '#kube/conditions.ts';
import { defaultBranchName } from '#kube/names.ts';
import type { Session } from '#schema/resources/session.ts';
import type { SessionFact } from '#schema/wire/sync.ts';
import { timestamp } from '../runtime/time.ts';
import type { ObservedPod, ObservedSession } from './observed.ts';

type Health = NonNullable<SessionFact['health']>;

/**
 * The daemon as far as it is known. `waiting`: a pod without a claim so far. `keep`: nothing is known yet, so what was
 * written stays.
 */
export type Daemon =
  | Readonly<{ state: 'none' | 'waiting' | 'keep' }>
  | Readonly<{ state: 'down'; since: string; lastAnswerAt: string | undefined }>
  | Readonly<{ state: 'silent' | 'answering'; health: Health; fact: SessionFact }>;

/** The daemon of `pod`; a fact of another pod is ignored. */
export const daemonOf = (o: ObservedSession, pod: ObservedPod | undefined): Daemon => {
  if (pod === undefined) return { state: 'none' };
  if (o.controlPlane.state === 'connecting') return { state: 'keep' };
  if (o.controlPlane.state === 'down') {
    const { lastContactMs } = o.controlPlane;
    const since = lastContactMs === undefined ? 'this operator started' : timestamp(lastContactMs);
    const lastAnswerAt = o.fact?.podUid === pod.uid ? o.fact.health?.lastAnswerAt : undefined;
    return { state: 'down', since, lastAnswerAt };
  }
  const { fact } = o;
  if (fact === undefined || fact.podUid !== pod.uid || fact.health === null || fact.health.state === 'Unknown') {
    return { state: 'waiting' };
  }
  return { state: fact.health.state === 'Silent' ? 'silent' : 'answering', health: fact.health, fact };
};

/** Why the last turn was no success, where it was none: the status has no other place for its words. */
const idleMessage = (turn: SessionFact['lastTurn']): string =>
  turn === null || !turn.final || turn.outcome === 'Succeeded' || turn.message === null
    ? 'no turn runs'
    : `no turn runs; the last one ended ${turn.outcome}: ${turn.message}`;

/** The branch of a Session. Source: 10-kubernetes §3, branch.name. */
export const branchOf = (session: Session): string =>
  session.spec.branch?.name ?? defaultBranchName(session.metadata.name, session.metadata.uid);

const unreachable = (type: string, reason: string, message: string): ConditionNote => ({
  type,
  status: 'Unknown',
  reason,
  message,
});

type Answers = Readonly<{
  /** While the pod has not claimed its session yet. */
  waiting: readonly [reason: string, message: string];
  answering: (health: Health, fact: SessionFact, branch: string) => Omit<ConditionNote, 'type'>;
}>;

const answer = (status: ConditionNote['status'], reason: string, message: string): Omit<ConditionNote, 'type'> => ({
  status,
  reason,
  message,
});

const ANSWERS: Readonly<Record<string, Answers>> = {
  WorkspaceReady: {
    waiting: ['Cloning', 'the daemon has not claimed the Session yet'],
    answering: (health, _fact, branch) => {
      if (health.repoReady) {
        const push = health.pushError === null ? '' : `; its newest push failed: ${health.pushError}`;
        return answer('True', 'CheckedOut', `branch ${health.branch ?? ''} is checked out${push}`);
      }
      if (health.bootErrorCategory === 'CloneFailed') {
        return answer('False', 'CloneFailed', health.bootError ?? 'the clone failed');
      }
      return health.branch !== null && health.branch !== branch
        ? answer('False', 'WrongBranch', `the checkout is on ${health.branch}, not on ${branch}`)
        : answer('False', 'Cloning', 'the repository is being cloned');
    },
  },
  HarnessReady: {
    waiting: ['Starting', 'the daemon has not claimed the Session yet'],
    answering: ({ harness, bootError, bootErrorCategory }) => {
      if (harness.ready) return answer('True', 'Ready', `${harness.id} takes turns`);
      if (bootErrorCategory === 'HarnessBoot' || bootErrorCategory === 'DaemonExit' || harness.state === 'error') {
        return answer('False', 'BootError', harness.error ?? bootError ?? `${harness.id} could not start`);
      }
      return harness.state === 'down'
        ? answer('False', 'Down', harness.error ?? `${harness.id} stopped`)
        : answer('False', 'Starting', `${harness.id} is starting`);
    },
  },
  ConfigApplied: {
    waiting: ['Proving', 'the daemon has not claimed the Session yet'],
    answering: ({ config, bootError, bootErrorCategory }) => {
      if (config.source === 'workspace') return answer('True', 'ReleasesOff', 'the checkout is the configuration');
      if (config.proven && config.fallback_reason !== null) return answer('True', 'FellBack', config.fallback_reason);
      if (config.proven && config.release_id === config.desired_release_id) {
        return answer('True', 'Applied', `release ${config.release_id ?? 'of the image'} is applied and proven`);
      }
      if (bootErrorCategory === 'ConfigProof' || (!config.proven && config.failed_release_id !== null)) {
        return answer('False', 'ProofFailed', bootError ?? `release ${config.failed_release_id} could not be proven`);
      }
      // A proven release serves on while the desired one waits for the end of the turn.
      return config.proven
        ? answer(
            'True',
            'Applied',
            `release ${config.release_id} serves; ${config.desired_release_id} waits for the next turn`,
          )
        : answer('False', 'Proving', 'the desired release is being applied');
    },
  },
  Active: {
    waiting: ['Idle', 'no turn has run yet'],
    answering: (_health, { activity, lastTurn }) => {
      if (activity === null || activity.state === 'Idle') return answer('False', 'Idle', idleMessage(lastTurn));
      return activity.state === 'Working'
        ? answer('True', 'Working', 'a turn runs')
        : answer('True', 'WaitingForInput', 'a turn waits for the answer of a human');
    },
  },
};

/** One of the four conditions that mirror the daemon. */
export const daemonNote = (
  type: 'WorkspaceReady' | 'HarnessReady' | 'ConfigApplied' | 'Active',
  o: ObservedSession,
  daemon: Daemon,
): ConditionNote => {
  const answers = ANSWERS[type] as Answers;
  switch (daemon.state) {
    case 'none':
      return { type, status: 'False', reason: 'NoSandbox', message: 'the Session has no pod' };
    case 'keep': {
      const stored = findCondition(o.session.status?.conditions ?? [], type);
      return stored ?? { type, status: 'False', reason: answers.waiting[0], message: answers.waiting[1] };
    }
    case 'waiting':
      return { type, status: 'False', reason: answers.waiting[0], message: answers.waiting[1] };
    case 'down':
      return unreachable(type, 'ControlPlaneUnavailable', `no contact with the control plane since ${daemon.since}`);
    case 'silent':
      return unreachable(type, 'DaemonUnreachable', `the daemon last answered at ${daemon.health.lastAnswerAt}`);
    case 'answering':
      return { type, ...answers.answering(daemon.health, daemon.fact, branchOf(o.session)) };
  }
};

/** Whether the health document of this pod's claim says `runtimeReady`. Source: K13. */
export const isRuntimeReady = (daemon: Daemon): boolean => daemon.state === 'answering' && daemon.health.runtimeReady;
