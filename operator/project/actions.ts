// Everything that a Project plan may ask for, as data. Types only; perform.ts is the one exhaustive switch over it.
import type { SyncRequest } from '#schema/wire/sync.ts';

/** One action; all are idempotent. Source: 10-kubernetes §5, ops. */
export type ProjectAction =
  | Readonly<{ kind: 'addFinalizer' | 'releaseFinalizer' }>
  | Readonly<{ kind: 'ensureServiceAccount' | 'removeServiceAccount' }>
  /** `features`: hash of the effective flags that are sent. */
  | Readonly<{ kind: 'syncProject'; request: SyncRequest; features: string }>
  /** A referenced Secret came, went or changed; its values are read by the control plane only. */
  | Readonly<{ kind: 'tellSecret'; name: string; version: string }>
  | Readonly<{ kind: 'deleteSession'; name: string; uid: string }>
  | Readonly<{ kind: 'closeProject'; reason: string }>;
