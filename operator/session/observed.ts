// What a Session controller sees in one pass: one immutable record, from caches and facts. Types only.
// Must not know where the parts come from.
import type { Installation } from '#schema/installation.ts';
import type { Project } from '#schema/resources/project.ts';
import type { HarnessReason } from '#schema/resources/sandbox-fields.ts';
import type { Session } from '#schema/resources/session.ts';
import type { ProjectFact, RegistryFact, SessionFact } from '#schema/wire/sync.ts';
import type { ControlPlane } from '../runtime/control-plane.ts';

/** A status of the API conventions: True, False or Unknown, with reason and message. */
export type Sign = Readonly<{ status: string; reason: string; message: string; sinceMs: number | undefined }>;

/** State of the one container. */
export type ContainerSign =
  | Readonly<{ state: 'waiting'; reason: string; message: string }>
  | Readonly<{ state: 'running' }>
  | Readonly<{ state: 'terminated'; exitCode: number; reason: string; message: string }>;

/** A pod whose controller is the Session: what plans read of it. Times in milliseconds since 1970. */
export type ObservedPod = Readonly<{
  name: string;
  uid: string;
  attempt: number;
  createdMs: number;
  deleting: boolean;
  /** The decision that this pod was started with. */
  harness: string;
  harnessReason: HarnessReason;
  gateway: boolean;
  restartToken: string | undefined;
  hash: string | undefined;
  image: string | undefined;
  runtimeClassName: string | undefined;
  userNamespace: boolean;
  phase: string;
  /** `status.reason` and `status.message`: evictions and lost nodes. */
  reason: string;
  message: string;
  node: string | undefined;
  ip: string | undefined;
  imageID: string | undefined;
  ready: Sign | undefined;
  scheduled: Sign | undefined;
  containersReady: boolean;
  disruption: Sign | undefined;
  container: ContainerSign | undefined;
}>;

/** The Session's network policy. `contentHash` is over what the server stores, `wantedHash` over what was rendered. */
export type ObservedNetworkPolicy = Readonly<{
  name: string;
  uid: string;
  wantedHash: string | undefined;
  contentHash: string;
}>;

/** The Session's volume claim. `retain`: it has no owner and outlives the Session. */
export type ObservedVolume = Readonly<{
  name: string;
  uid: string;
  resourceVersion: string;
  phase: string;
  deleting: boolean;
  retain: boolean;
  retained: boolean;
}>;

/** A place among the running sandboxes. `granted` holds one until a pod exists or the wish is withdrawn. */
export type Slot = Readonly<
  { state: 'none' | 'granted' } | { state: 'waiting'; because: 'ProjectRunning' | 'InstallationRunning' | 'Starts' }
>;

/** How the call that ends an attempt stands. */
export type StopProgress = Readonly<{ podUid: string; state: 'draining' | 'stopped'; askedAgoMs: number }>;

/** Everything that a Session plan may look at. Source: 10-kubernetes §5. */
export type ObservedSession = Readonly<{
  /** API-server time. Units: milliseconds since 1970. Source: K20. */
  now: number;
  session: Session;
  /** Undefined when the namespace has none, which a direct read has confirmed. */
  project: Project | undefined;
  projectFact: ProjectFact | undefined;
  /** As it came: a plan ignores one of another pod. */
  fact: SessionFact | undefined;
  /** The names of the provider registry; undefined until the control plane told them. */
  registry: RegistryFact | undefined;
  controlPlane: ControlPlane;
  networkPolicy: ObservedNetworkPolicy | undefined;
  volume: ObservedVolume | undefined;
  pods: readonly ObservedPod[];
  /** Own creates and deletes that the cache does not show yet. Source: K28. */
  unseen: Readonly<{ networkPolicy: boolean; volume: boolean; pod: boolean }>;
  serviceAccountSeen: boolean;
  slot: Slot;
  /** Unfinished Sessions of the Project that came before this one; undefined when it is accepted already. */
  unfinishedBefore: number | undefined;
  /** Name of an unfinished Session of the Project that was there before and works on the branch of this spec. */
  branchHeldBy: string | undefined;
  stop: StopProgress | undefined;
  /** Pods whose end the control plane was told in this process. */
  reportedGone: readonly string[];
  /** Time since it was first seen that the Session is due for deletion. Units: milliseconds, monotonic. Source: K20. */
  dueForDeletionMs: number | undefined;
  installation: Installation;
  /** Product version, for labels. */
  version: string;
}>;
