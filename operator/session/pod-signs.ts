// What the signs of a pod mean: SandboxReady, a lost node, and why a sandbox ended. Pure.
// Must not know what is done about it. Source: 10-kubernetes §3, §4 (failures), notes on termination in §7.
import type { ConditionNote } from '#kube/conditions.ts';
import type { FailureCategory } from '#schema/resources/session.ts';
import type { ObservedPod, ObservedVolume } from './observed.ts';

/** Why a sandbox is no good, as a category of the closed list and a sentence. */
export type FailureSign = Readonly<{ category: FailureCategory; message: string }>;

const TYPE = 'SandboxReady';
const note = (status: ConditionNote['status'], reason: string, message: string): ConditionNote => ({
  type: TYPE,
  status,
  reason,
  message,
});

/** Waiting reasons of the kubelet that mean: the image cannot be had. */
const PULL_FAILED: ReadonlySet<string> = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
]);
/** Those that no waiting can mend. */
const PULL_HOPELESS: ReadonlySet<string> = new Set(['InvalidImageName', 'ErrImageNeverPull']);

/** Reasons of the pod condition DisruptionTarget. */
const DISRUPTIONS: Readonly<Record<string, FailureCategory>> = {
  EvictionByEvictionAPI: 'Drained',
  PreemptionByScheduler: 'Preempted',
  DeletionByTaintManager: 'NodeLost',
  DeletionByPodGC: 'NodeLost',
};

/** Causes that the daemon begins its last word with, as in `harness_not_available: …`; others are DaemonExit. */
const LAST_WORDS: Readonly<Record<string, FailureCategory>> = {
  harness_not_available: 'HarnessBoot',
  harness_mismatch: 'HarnessBoot',
  data_mount: 'VolumeAttach',
  branch_not_found: 'CloneFailed',
};

/** True while a scheduling gate holds the pod: the start deadline stands still. */
export const isGated = (pod: ObservedPod): boolean =>
  pod.scheduled?.status === 'False' && pod.scheduled.reason === 'SchedulingGated';

/**
 * True when the node of the pod does not answer. There is no readiness probe, so a pod whose containers are ready and
 * whose own Ready is False was marked by the node controller. Source: K13, K16.
 */
export const isNodeLost = (pod: ObservedPod): boolean =>
  pod.reason === 'NodeLost' ||
  (pod.container?.state === 'running' && pod.containersReady && pod.ready?.status === 'False');

/** True when the container runs and nothing takes the pod away. */
export const isRunning = (pod: ObservedPod): boolean =>
  !pod.deleting && pod.phase === 'Running' && pod.container?.state === 'running' && !isNodeLost(pod);

const NODE_LOST_ADVICE =
  'the replacement waits until the pod object is gone: bring the node back, delete the Node, or taint it out-of-service';

const pendingNote = (pod: ObservedPod, volume: ObservedVolume | undefined): ConditionNote => {
  if (isGated(pod))
    return note('False', 'SchedulingGated', pod.scheduled?.message || 'a scheduling gate holds the pod');
  if (pod.scheduled?.status === 'False') {
    return note('False', 'Unschedulable', pod.scheduled.message || 'no node has room for the pod');
  }
  if (pod.container?.state === 'waiting' && PULL_FAILED.has(pod.container.reason)) {
    return note('False', 'ImagePullFailed', `${pod.container.reason}: ${pod.container.message || pod.image || ''}`);
  }
  if (volume !== undefined && volume.phase !== 'Bound' && pod.node !== undefined) {
    return note('False', 'VolumePending', `volume claim ${volume.name} is not bound`);
  }
  return note('False', 'Creating', `pod ${pod.name} has not started its container yet`);
};

/** SandboxReady of a Session whose current pod is `pod`. */
export const sandboxNote = (pod: ObservedPod, volume: ObservedVolume | undefined): ConditionNote => {
  if (isNodeLost(pod)) {
    return note('Unknown', 'NodeLost', `node ${pod.node ?? 'unknown'} does not answer; ${NODE_LOST_ADVICE}`);
  }
  if (pod.deleting) return note('False', 'Terminating', `pod ${pod.name} is being deleted`);
  if (isRunning(pod)) return note('True', 'Running', `pod ${pod.name} runs on ${pod.node ?? 'a node'}`);
  return pendingNote(pod, volume);
};

/**
 * A kubelet that evicts a pod for its own storage leaves no reason in it when the container ends with 0 (measured, 1.34.4):
 * phase Succeeded, and an Event that the operator does not read.
 */
const ENDED_BY_THE_NODE =
  'the node ended the sandbox and left no reason in the pod; its events may say more (kubectl get events). A pod that is above ' +
  'its local storage ends so: an Ephemeral workspace above workspace.size, or scratch space above its limit';

const endOfContainer = (pod: ObservedPod): FailureSign | undefined => {
  if (pod.container?.state !== 'terminated') return undefined;
  const { exitCode, reason, message } = pod.container;
  const word = message.trim();
  const named = LAST_WORDS[/^([a-z_]+): /.exec(word)?.[1] ?? ''];
  if (named !== undefined) return { category: named, message: word };
  // The reason is sticky and hits single tools too: only the kernel's own signal counts.
  if (reason === 'OOMKilled' && exitCode === 137) {
    return { category: 'OOMKilled', message: 'the sandbox used more memory than its limit' };
  }
  if (exitCode === 0 && word.startsWith('drained:')) return { category: 'DaemonExit', message: ENDED_BY_THE_NODE };
  return { category: 'DaemonExit', message: `the daemon ended with exit code ${exitCode}${word && `: ${word}`}` };
};

const endOfPod = (pod: ObservedPod): FailureSign | undefined => {
  const disruption = pod.disruption?.status === 'True' ? pod.disruption : undefined;
  const text = pod.message || disruption?.message || '';
  if (pod.reason === 'Evicted') {
    // An eviction for the pod's own limit carries no DisruptionTarget.
    return disruption === undefined
      ? { category: 'StorageLimit', message: text || 'the sandbox used more local storage than its limit' }
      : { category: 'Evicted', message: text || 'the node was short of resources' };
  }
  if (disruption?.reason === 'TerminationByKubelet' || pod.reason === 'NodeShutdown' || pod.reason === 'Terminated') {
    return { category: 'NodeShutdown', message: text || 'the node was shut down' };
  }
  const category = disruption === undefined ? undefined : DISRUPTIONS[disruption.reason];
  if (category !== undefined) return { category, message: text || `the pod was disrupted: ${disruption?.reason}` };
  return pod.reason === 'NodeLost' ? { category: 'NodeLost', message: text || 'the node was lost' } : undefined;
};

/**
 * Why the pod is no good although nobody asked for its end; undefined while it may still become or stay good.
 * Source: 10-kubernetes §4, failures.
 */
export const failureOf = (pod: ObservedPod): FailureSign | undefined => {
  const ended = pod.phase === 'Failed' || pod.phase === 'Succeeded' || pod.container?.state === 'terminated';
  // Who disrupts says so before the pod goes; it may be gone at the next look.
  const isDisrupted = pod.disruption?.status === 'True' && pod.disruption.reason in DISRUPTIONS;
  if (pod.deleting || ended || isDisrupted) {
    const sign = endOfPod(pod) ?? endOfContainer(pod);
    if (sign !== undefined) return sign;
    if (pod.deleting) return { category: 'DaemonExit', message: `pod ${pod.name} was deleted` };
    const why = pod.reason || pod.phase;
    return { category: 'Unschedulable', message: `the node refused the pod: ${why}: ${pod.message}` };
  }
  if (pod.container?.state === 'waiting' && PULL_HOPELESS.has(pod.container.reason)) {
    return { category: 'ImagePull', message: pod.container.message || `image ${pod.image ?? ''} cannot be pulled` };
  }
  return undefined;
};

/** Category of a start whose deadline passed, from what was still pending. Daemon reasons win over the pod's. */
export const pendingCategory = (
  pod: ObservedPod,
  volume: ObservedVolume | undefined,
  boot: Readonly<{ category: FailureCategory | null; error: string | null }>,
): FailureSign => {
  if (boot.category !== null) return { category: boot.category, message: boot.error ?? 'the daemon could not boot' };
  if (isRunning(pod)) return { category: 'StartDeadline', message: 'the sandbox did not become ready in time' };
  const { reason, message } = pendingNote(pod, volume);
  const categories: Readonly<Record<string, FailureCategory>> = {
    Unschedulable: 'Unschedulable',
    ImagePullFailed: 'ImagePull',
    VolumePending: 'VolumeAttach',
  };
  return { category: categories[reason] ?? 'StartDeadline', message };
};
