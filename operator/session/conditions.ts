// All conditions of a Session, Ready first, as notes. Pure; each is a chain of checks, the first that fails decides.
// Must not know actions. Source: 10-kubernetes §3.
import { type ConditionNote, findCondition } from '#kube/conditions.ts';
import type { FailureCategory } from '#schema/resources/session.ts';
import { daemonNote } from './daemon.ts';
import { effectiveWorkspace } from './effective.ts';
import { failureSentence, isDisruption } from './failures.ts';
import { BUDGET_USED_UP } from './gates.ts';
import { isNodeLost, sandboxNote } from './pod-signs.ts';
import type { Scene } from './scene.ts';

const note = (type: string, status: ConditionNote['status'], reason: string, message: string): ConditionNote => ({
  type,
  status,
  reason,
  message,
});

const storedNote = ({ stored }: Scene, type: string): ConditionNote | undefined =>
  findCondition(stored.conditions ?? [], type);

/** What Ready says while the pod is being removed. */
const stoppingNote = ({ intent }: Scene): ConditionNote => {
  const because = (reason: string, message: string) => note('Ready', 'False', reason, message);
  switch (intent.kind) {
    case 'finished':
      return because('Finished', `the Session ended ${intent.outcome}; its sandbox is being removed`);
    case 'suspend':
      return because('Suspending', `the sandbox is being removed: ${intent.reason}`);
    default:
      return because('Restarting', 'the sandbox is being replaced');
  }
};

/** What a suspended Session has of its files. Source: K18. */
const filesOf = ({ o, stored }: Scene): string => {
  if (o.volume !== undefined) return 'its files are kept';
  const { type } = effectiveWorkspace(o.session, o.project, o.installation, undefined);
  if (type === 'Ephemeral') return 'only what was pushed is kept, as its workspace is Ephemeral';
  return stored.startedAt === undefined
    ? 'it has no files yet'
    : 'its volume is gone: what was not pushed is lost, and the next start clones again';
};

/** What Ready says of a Session without a current pod. */
const withoutPodNote = (scene: Scene): ConditionNote => {
  const { intent, gate, leftovers, failure, lost, o } = scene;
  if (intent.kind === 'finished') {
    const why = failure === undefined ? '' : `: ${failure.category}: ${failure.message}`;
    return note(
      'Ready',
      'False',
      intent.outcome === 'Failed' ? 'Failed' : 'Finished',
      `the Session ended ${intent.outcome}${why}`,
    );
  }
  if (intent.kind === 'suspend' && intent.reason === 'Budget') {
    return note('Ready', 'False', 'BudgetReached', `${BUDGET_USED_UP}; ${filesOf(scene)}`);
  }
  if (intent.kind === 'suspend') {
    return note('Ready', 'False', 'Suspended', `the Session is suspended (${intent.reason}); ${filesOf(scene)}`);
  }
  const isLostNode = (lost ?? failure)?.category === 'NodeLost' && leftovers.length > 0;
  if (isLostNode && leftovers[0] !== undefined) {
    return { ...sandboxNote({ ...leftovers[0], reason: 'NodeLost' }, o.volume), type: 'Ready' };
  }
  const before = o.controlPlane.state === 'connecting' ? storedNote(scene, 'Ready') : undefined;
  if (before !== undefined && gate !== undefined) return before;
  if (gate?.kind === 'closed') return note('Ready', 'False', gate.reason, gate.message);
  if (leftovers.length > 0 && failure !== undefined && isDisruption(failure)) {
    return note('Ready', 'False', 'Disrupted', failureSentence(failure));
  }
  return leftovers.length > 0
    ? note('Ready', 'False', 'Pending', `waiting for pod ${leftovers[0]?.name} to end`)
    : note('Ready', 'False', 'Pending', 'the sandbox is about to be made');
};

const failing = (scene: Scene, others: readonly ConditionNote[]): ConditionNote => {
  if (scene.accepted.status !== 'True') {
    return note('Ready', 'False', 'NotAccepted', `${scene.accepted.reason}: ${scene.accepted.message}`);
  }
  const order = ['SandboxReady', 'WorkspaceReady', 'HarnessReady', 'ConfigApplied'];
  const first = order
    .map((type) => others.find((other) => other.type === type))
    .find((other) => other?.status !== 'True');
  return note(
    'Ready',
    'False',
    'Starting',
    first === undefined ? 'the sandbox is not routable yet' : `${first.type} ${first.reason}: ${first.message}`,
  );
};

const readyNote = (scene: Scene, others: readonly ConditionNote[]): ConditionNote => {
  const { current, daemon, stopping, ready, stored, o } = scene;
  if (stopping) return stoppingNote(scene);
  if (current === undefined) return withoutPodNote(scene);
  if (isNodeLost(current)) return { ...sandboxNote(current, o.volume), type: 'Ready' };
  const before = scene.isNewPod ? undefined : storedNote(scene, 'Ready');
  if (daemon.state === 'keep' && before !== undefined) return before;
  if (daemon.state === 'down') {
    const message = `no contact with the control plane since ${daemon.since}`;
    if (stored.readyAt !== undefined && !scene.isNewPod)
      return note('Ready', 'Unknown', 'ControlPlaneUnavailable', message);
    return before ?? note('Ready', 'False', 'Starting', message);
  }
  if (daemon.state === 'silent') {
    return note('Ready', 'Unknown', 'DaemonUnreachable', `the daemon last answered at ${daemon.health.lastAnswerAt}`);
  }
  return ready ? note('Ready', 'True', 'Ready', 'the sandbox takes prompts') : failing(scene, others);
};

const sandboxReady = (scene: Scene): ConditionNote => {
  const { current, leftovers, o, gate, failure } = scene;
  if (current !== undefined) return sandboxNote(current, o.volume);
  const leftover = leftovers[0];
  if (leftover !== undefined) {
    const lostNode = failure?.category === 'NodeLost' ? { ...leftover, reason: 'NodeLost' } : leftover;
    return lostNode.reason === 'NodeLost'
      ? sandboxNote(lostNode, o.volume)
      : note('SandboxReady', 'False', 'Terminating', `pod ${leftover.name} is being removed`);
  }
  if (scene.intent.kind === 'run') {
    if (failure?.category === 'Rejected' || failure?.category === 'NameTaken') {
      return note('SandboxReady', 'False', failure.category, failure.message);
    }
    if (gate?.kind === 'open' && o.networkPolicy === undefined) {
      return note('SandboxReady', 'False', 'PolicyPending', 'the network policy has not been seen yet');
    }
    if (gate?.kind === 'open' && scene.choice?.workspace.type === 'Persistent' && o.volume === undefined) {
      return note('SandboxReady', 'False', 'VolumePending', 'the volume claim has not been seen yet');
    }
  }
  return note('SandboxReady', 'False', 'NoSandbox', 'the Session has no pod');
};

const suspended = ({ intent }: Scene): ConditionNote =>
  intent.kind === 'suspend'
    ? note('Suspended', 'True', intent.reason, 'the Session is suspended')
    : note('Suspended', 'False', 'NotSuspended', 'the Session is not suspended');

const finished = ({ intent, current, leftovers }: Scene): ConditionNote => {
  const isOver = intent.kind === 'finished' && current === undefined && leftovers.length === 0;
  return isOver
    ? note('Finished', 'True', intent.outcome, `the Session ended ${intent.outcome}`)
    : note('Finished', 'False', 'NotFinished', 'the Session has not ended');
};

const MAX_KEYS = 10;

const featuresSupported = (scene: Scene): ConditionNote => {
  const { o, current, stored } = scene;
  const type = 'FeaturesSupported';
  const manifest = o.projectFact?.manifest.lastValid;
  const harness = current?.harness ?? stored.harness?.id;
  if (manifest === undefined || manifest === null || harness === undefined) {
    return storedNote(scene, type) ?? note(type, 'Unknown', 'NotRead', 'the manifest has not been compared yet');
  }
  const ignored = manifest.ignoredKeys[harness] ?? [];
  return ignored.length === 0
    ? note(type, 'True', 'AllSupported', `${harness} obeys every key of the manifest`)
    : note(type, 'False', 'KeysIgnored', `${harness} ignores ${ignored.slice(0, MAX_KEYS).join(', ')}`);
};

const networkIsolated = (scene: Scene): ConditionNote => {
  const type = 'NetworkIsolated';
  const { daemon } = scene;
  const unknown = note(type, 'Unknown', 'NotProbed', 'the probe is off or has not ended');
  if (daemon.state !== 'answering' || daemon.health.isolation === 'not-probed') {
    return scene.isNewPod ? unknown : (storedNote(scene, type) ?? unknown);
  }
  return daemon.health.isolation === 'enforced'
    ? note(type, 'True', 'Enforced', 'a connection that the network policy forbids failed')
    : note(type, 'False', 'NotEnforced', 'a connection that the network policy forbids succeeded');
};

const DISRUPTED: ReadonlySet<FailureCategory> = new Set([
  'Drained',
  'Preempted',
  'Evicted',
  'NodeShutdown',
  'NodeLost',
]);

/** Absent until the first disruption. */
const disrupted = (scene: Scene): ConditionNote | undefined => {
  const { lost, ready } = scene;
  if (lost !== undefined && DISRUPTED.has(lost.category)) return note('Disrupted', 'True', lost.category, lost.message);
  const before = storedNote(scene, 'Disrupted');
  return before?.status === 'True' && ready
    ? note('Disrupted', 'False', 'NotDisrupted', 'the sandbox was replaced')
    : before;
};

/** The conditions in the order they are listed. */
export const sessionConditions = (scene: Scene): ConditionNote[] => {
  const { o, daemon } = scene;
  const others: ConditionNote[] = [
    scene.accepted,
    sandboxReady(scene),
    daemonNote('WorkspaceReady', o, daemon),
    daemonNote('HarnessReady', o, daemon),
    daemonNote('ConfigApplied', o, daemon),
    daemonNote('Active', o, daemon),
    suspended(scene),
    finished(scene),
    featuresSupported(scene),
    networkIsolated(scene),
  ];
  const disruption = disrupted(scene);
  return [readyNote(scene, others), ...others, ...(disruption === undefined ? [] : [disruption])];
};
