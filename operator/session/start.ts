// The steps of a start: finalizer, service account, network policy, volume, and once all are seen the pod. Pure.
// Must not know gates. Source: 10-kubernetes §4 (start), K15, K21.
import { FINALIZERS } from '#kube/names.ts';
import type { SessionAction } from './actions.ts';
import { desiredNetworkPolicy, networkPolicyHash } from './desired-network-policy.ts';
import { desiredPod } from './desired-pod.ts';
import { desiredVolume } from './desired-volume.ts';
import type { ObservedSession } from './observed.ts';
import type { Scene } from './scene.ts';

/**
 * The policy as it should be, if the one that is there is another: missing, edited by hand, or from an older Project.
 * Without the Project nothing is known to be wanted. Source: K21.
 */
export const policyActions = (o: ObservedSession): SessionAction[] => {
  const { session, project, installation, version, networkPolicy } = o;
  if (project === undefined || o.unseen.networkPolicy) return [];
  const inputs = { session, egress: project.spec.egress, installation, version };
  const hash = networkPolicyHash(inputs);
  if (networkPolicy?.wantedHash === hash && networkPolicy.contentHash === hash) return [];
  return [{ kind: 'applyNetworkPolicy', object: desiredNetworkPolicy(inputs), exists: networkPolicy !== undefined }];
};

/** Number of the next attempt. Never reused, whatever is left of earlier ones. */
const nextAttempt = ({ stored, o }: Scene): number =>
  Math.max(stored.pod?.attempt ?? 0, ...o.pods.map((pod) => pod.attempt)) + 1;

/** What a start does now; empty while it waits for the caches to show what was made. */
export const startActions = (scene: Scene): SessionAction[] => {
  const { o, choice } = scene;
  const { session, project, installation, version, volume, unseen } = o;
  if (project === undefined || choice === undefined) return [];
  const actions: SessionAction[] = [];
  const hasFinalizer = session.metadata.finalizers.includes(FINALIZERS.session);
  if (!hasFinalizer) actions.push({ kind: 'addFinalizer' });
  if (!o.serviceAccountSeen) actions.push({ kind: 'ensureServiceAccount' });
  actions.push(...policyActions(o));
  const needsVolume = choice.workspace.type === 'Persistent';
  if (needsVolume && volume === undefined && !unseen.volume) {
    actions.push({ kind: 'createVolume', object: desiredVolume(session, choice.workspace, version) });
  }
  const seen = !unseen.networkPolicy && (!needsVolume || (volume !== undefined && !volume.deleting));
  const alone = o.pods.length === 0 && !unseen.pod;
  if (actions.length > 0 || !seen || !alone) return actions;
  const object = desiredPod({ session, project, choice, installation, version }, nextAttempt(scene));
  return [{ kind: 'createPod', object }];
};
