// From the JSON of a pod, policy or volume claim to what plans read of it. Pure. Must not know caches or rules.
import { ANNOTATIONS, LABELS } from '#kube/names.ts';
import type { KubeObject } from '#kube/resource-types.ts';
import { HARNESS_REASONS, type HarnessReason } from '#schema/resources/sandbox-fields.ts';
import { shortHash } from '../runtime/canonical.ts';
import { timeMs } from '../runtime/time.ts';
import type { ContainerSign, ObservedNetworkPolicy, ObservedPod, ObservedVolume, Sign } from './observed.ts';

/** Name of the one container of a sandbox. */
export const CONTAINER = 'sandbox';

type Json = Readonly<Record<string, unknown>>;

const record = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(record) : []);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const optional = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const conditionOf = (status: Json, type: string): Sign | undefined => {
  const found = list(status['conditions']).find((condition) => condition['type'] === type);
  if (found === undefined) return undefined;
  return {
    status: text(found['status']),
    reason: text(found['reason']),
    message: text(found['message']),
    sinceMs: timeMs(optional(found['lastTransitionTime'])),
  };
};

const containerOf = (status: Json): Readonly<{ sign: ContainerSign | undefined; imageID: string | undefined }> => {
  const found = list(status['containerStatuses']).find((container) => container['name'] === CONTAINER);
  if (found === undefined) return { sign: undefined, imageID: undefined };
  const state = record(found['state']);
  const imageID = optional(found['imageID']);
  if ('terminated' in state) {
    const end = record(state['terminated']);
    const exitCode = typeof end['exitCode'] === 'number' ? end['exitCode'] : -1;
    return {
      sign: { state: 'terminated', exitCode, reason: text(end['reason']), message: text(end['message']) },
      imageID,
    };
  }
  if ('running' in state) return { sign: { state: 'running' }, imageID };
  const waiting = record(state['waiting']);
  return { sign: { state: 'waiting', reason: text(waiting['reason']), message: text(waiting['message']) }, imageID };
};

const isHarnessReason = (word: string | undefined): word is HarnessReason =>
  HARNESS_REASONS.some((reason) => reason === word);

/** What plans read of a pod of ours. Never throws: what is missing reads as absent. */
export const readPod = (pod: KubeObject): ObservedPod => {
  const { metadata } = pod;
  const spec = record(pod['spec']);
  const status = record(pod['status']);
  const annotation = (key: string): string | undefined => metadata.annotations?.[key];
  const reason = annotation(ANNOTATIONS.harnessReason);
  const { sign, imageID } = containerOf(status);
  return {
    name: metadata.name,
    uid: metadata.uid ?? '',
    attempt: Number(annotation(ANNOTATIONS.attempt) ?? '0') || 0,
    createdMs: timeMs(metadata.creationTimestamp) ?? 0,
    deleting: metadata.deletionTimestamp !== undefined,
    harness: metadata.labels?.[LABELS.harness] ?? '',
    harnessReason: isHarnessReason(reason) ? reason : 'default',
    gateway: annotation(ANNOTATIONS.gateway) !== 'off',
    restartToken: annotation(ANNOTATIONS.restartToken),
    hash: annotation(ANNOTATIONS.podHash),
    image: optional(list(spec['containers'])[0]?.['image']),
    runtimeClassName: optional(spec['runtimeClassName']),
    userNamespace: spec['hostUsers'] === false,
    phase: text(status['phase']),
    reason: text(status['reason']),
    message: text(status['message']),
    node: optional(spec['nodeName']),
    ip: optional(status['podIP']),
    imageID,
    ready: conditionOf(status, 'Ready'),
    scheduled: conditionOf(status, 'PodScheduled'),
    containersReady: conditionOf(status, 'ContainersReady')?.status === 'True',
    disruption: conditionOf(status, 'DisruptionTarget'),
    container: sign,
  };
};

/** What plans read of a network policy of ours. */
export const readNetworkPolicy = (policy: KubeObject): ObservedNetworkPolicy => ({
  name: policy.metadata.name,
  uid: policy.metadata.uid ?? '',
  wantedHash: policy.metadata.annotations?.[ANNOTATIONS.specHash],
  contentHash: shortHash(policy['spec']),
});

/** What plans read of a volume claim of ours. */
export const readVolume = (claim: KubeObject): ObservedVolume => ({
  name: claim.metadata.name,
  uid: claim.metadata.uid ?? '',
  resourceVersion: claim.metadata.resourceVersion ?? '',
  phase: text(record(claim['status'])['phase']),
  deleting: claim.metadata.deletionTimestamp !== undefined,
  retain: !(claim.metadata.ownerReferences ?? []).some((owner) => owner.controller === true),
  retained: claim.metadata.labels?.[LABELS.retained] === 'true',
});
