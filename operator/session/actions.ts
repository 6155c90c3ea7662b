// Everything that a Session plan may ask for, as data. Types only; perform.ts is the one exhaustive switch over it.
import type { KubeObject } from '#kube/resource-types.ts';

/** One action; all are idempotent. Source: 10-kubernetes §5, ops. */
export type SessionAction =
  | Readonly<{ kind: 'addFinalizer' | 'releaseFinalizer' }>
  | Readonly<{ kind: 'ensureServiceAccount' }>
  /** POST when `exists` is false, apply otherwise. */
  | Readonly<{ kind: 'applyNetworkPolicy'; object: KubeObject; exists: boolean }>
  | Readonly<{ kind: 'createVolume'; object: KubeObject }>
  | Readonly<{ kind: 'retainVolume'; name: string; uid: string }>
  | Readonly<{ kind: 'requestSlot' | 'releaseSlot' }>
  | Readonly<{ kind: 'createPod'; object: KubeObject }>
  | Readonly<{ kind: 'deletePod'; name: string; uid: string; graceSeconds?: number | undefined }>
  /** The fence of one attempt, with what becomes of its turn. */
  | Readonly<{
      kind: 'stopSession';
      podUid: string;
      attempt: number;
      reason: string;
      turn: 'wait' | 'abort';
      deadlineSeconds: number;
    }>
  | Readonly<{ kind: 'reportPodGone'; podUid: string; reason: string }>
  | Readonly<{ kind: 'closeSession'; reason: string }>
  /** Remember, or forget, since when the Session is due for deletion. Source: K20. */
  | Readonly<{ kind: 'noteDue' | 'forgetDue' }>
  | Readonly<{ kind: 'deleteSession' }>;
