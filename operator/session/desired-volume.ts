// The volume claim of a Persistent workspace. Pure; a whole fresh object each time. Must not know when it is made.
import { childLabels, childName } from '#kube/names.ts';
import { controllerReference } from '#kube/owner.ts';
import { type KubeObject, SESSIONS } from '#kube/resource-types.ts';
import type { Session } from '#schema/resources/session.ts';
import { bytesQuantity, parseQuantity } from '../runtime/quantity.ts';
import type { EffectiveWorkspace } from './effective.ts';

/**
 * The claim of a Session. With policy Delete the Session owns it and garbage collection takes it; with Retain nobody
 * does, and only its session-uid label says whose it was. Source: 10-kubernetes §5, K22.
 */
export const desiredVolume = (session: Session, workspace: EffectiveWorkspace, version: string): KubeObject => {
  const { name, namespace, uid } = session.metadata;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: childName(name, uid),
      namespace,
      labels: childLabels({
        project: session.spec.projectRef.name,
        session: name,
        sessionUid: uid,
        source: session.spec.source.kind,
        version,
      }),
      ...(workspace.reclaimPolicy === 'Retain'
        ? {}
        : { ownerReferences: [controllerReference(SESSIONS, session.metadata)] }),
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: bytesQuantity(parseQuantity(workspace.size) ?? 0n) } },
      ...(workspace.storageClassName === undefined ? {} : { storageClassName: workspace.storageClassName }),
    },
  };
};
