// The shape of conditions and the closed lists of types and reasons of both kinds, each reason with when it is true.
// It must not know how a condition is computed; the operator decides, these lists bound what it may say.
import { z } from 'zod';
import { counter, Timestamp, text } from '../primitives.ts';

/** Status of a condition. */
export const CONDITION_STATUSES = ['True', 'False', 'Unknown'] as const;

/** One condition, as the Kubernetes API conventions have it; messages at most 1,024 characters. Source: K10, K11. */
export const ConditionSchema = z.object({
  type: text(64)
    .min(1)
    .regex(/^[A-Za-z][A-Za-z0-9]*$/)
    .describe('Type of the condition, CamelCase.'),
  status: z.enum(CONDITION_STATUSES).describe('True, False or Unknown.'),
  observedGeneration: counter().optional().describe('Generation of the object that this condition answers.'),
  lastTransitionTime: Timestamp.describe('When status last changed.'),
  reason: text(64)
    .min(1)
    .regex(/^[A-Za-z][A-Za-z0-9]*$/)
    .describe('Why, as one word of a closed list.'),
  message: text(1024).describe('Why, as a sentence for people.'),
});
export type Condition = z.output<typeof ConditionSchema>;

/** What a condition says while the control plane cannot be reached. */
type WhenControlPlaneIsDown = 'Unknown' | 'UnknownIfRunning' | 'Keeps';

type ConditionWords = Readonly<{
  True: Readonly<Record<string, string>>;
  False: Readonly<Record<string, string>>;
  Unknown: Readonly<Record<string, string>>;
  controlPlaneDown: WhenControlPlaneIsDown;
}>;

/** Condition types of a Project, in the order they are listed, with every reason and when it is true. Source: 10-kubernetes §2. */
export const PROJECT_CONDITIONS = {
  Ready: {
    True: { Ready: 'every other condition except WithinLimits is True' },
    False: {
      NotReady: 'another condition is False; the message repeats the first one',
      Suspended: 'spec.operatingMode is Suspended',
      Deleting: 'the Project is being deleted and its sessions or its mirror are being removed',
      DeletionBlocked: 'the Project is being deleted, has sessions, and spec.deletionPolicy is Block',
      Failed: 'the operator cannot go on with the Project until something changes; the message is the error',
    },
    Unknown: {
      Syncing: 'the first sync of this generation has not answered yet',
      ControlPlaneUnavailable: 'the control plane has not been reachable for 30 seconds',
    },
    controlPlaneDown: 'Unknown',
  },
  RepositoryReady: {
    True: { Synced: 'the repository was fetched and its default branch is mirrored' },
    False: {
      Unreachable: 'the host of the repository did not answer or refused the connection',
      NotFound: 'the host answered that there is no such repository',
      AuthFailed: 'the host refused the credentials, or asked for some and there are none',
      BranchNotFound: 'the repository has no branch of the name spec.repository.defaultBranch',
      HostKeyUnknown: 'the ssh host key is not in known_hosts of the credentials Secret',
      CertificateUnknown: 'the TLS certificate of the host is signed by no trusted authority',
      HostNotAllowed: 'the installation does not allow this host, or http on it',
      TooLarge: 'the repository is larger than the installation allows',
      TimedOut: 'the fetch did not end within its time limit',
    },
    Unknown: {
      Syncing: 'the first fetch has not ended yet',
      ControlPlaneUnavailable: 'the control plane has not been reachable for 30 seconds',
    },
    controlPlaneDown: 'Unknown',
  },
  ManifestValid: {
    True: { Valid: 'the manifest of the newest commit has no error' },
    False: {
      Missing: 'the newest commit has no file at spec.manifestPath',
      SyntaxError: 'the manifest is not well-formed YAML',
      SchemaError: 'a value of the manifest or of an agent file is not allowed',
      VersionTooNew: 'beeuni_version is above what this installation reads',
      TooLarge: 'the manifest is larger than 1 MiB, nested deeper than 64, or expands too many aliases',
    },
    Unknown: { NotRead: 'no commit has been read yet' },
    controlPlaneDown: 'Keeps',
  },
  ModelsValid: {
    True: {
      AllKnown: 'every model named in the Project and its manifest is registered and enabled, and there is one to use',
    },
    False: {
      UnknownModel: 'a model name is not registered, or no model is registered and enabled at all',
      ModelDisabled: 'a named model is disabled',
      ProviderDisabled: 'the provider of a named model is disabled',
      NotAllowed:
        'a named model is not in spec.models.allowed, or the Project may use none: by that list, or with llm_gateway off',
    },
    Unknown: { RegistryUnavailable: 'the provider registry could not be read' },
    controlPlaneDown: 'Unknown',
  },
  ReleasePublished: {
    True: {
      Published: 'the configuration release of the newest valid commit is published',
      ReleasesOff: 'the flag config_releases is off; sessions read their checkout',
    },
    False: {
      Publishing: 'the release of the newest valid commit is being built',
      BuildFailed: 'the release could not be built; the previous one stays assigned',
      TooLarge: 'the configuration is above the size limit of releases',
      Quarantined: 'the newest release failed in two sessions and is no longer assigned',
    },
    Unknown: { NotBuilt: 'no commit has been read yet' },
    controlPlaneDown: 'Keeps',
  },
  CredentialsReady: {
    True: {
      Found: 'every referenced Secret exists with the keys that are needed',
      NotNeeded: 'the Project refers to no Secret',
    },
    False: {
      SecretNotFound: 'a referenced Secret does not exist',
      KeyMissing: 'a referenced Secret lacks the key that is named',
      TypeUnsupported: 'the repository credentials are none of username and password, token, ssh-privatekey',
      AccessDenied: 'Beeuni may not read Secrets in this namespace; the message is the command that grants it',
    },
    Unknown: { NotRead: 'the Secrets have not been looked at yet' },
    controlPlaneDown: 'Keeps',
  },
  PolicyAccepted: {
    True: { Accepted: 'the installation allows everything that the Project asks for' },
    False: {
      ImageNotAllowed: 'an image is under no allowed prefix or lacks a digest',
      RuntimeClassNotAllowed: 'spec.sandbox.runtimeClassName is not allowed by the installation',
      EgressNotAllowed: 'spec.egress.allow names a private range that the installation does not allow',
      ResourcesNotAllowed: 'resources are above the ceiling of the installation',
    },
    Unknown: {},
    controlPlaneDown: 'Keeps',
  },
  WithinLimits: {
    True: { WithinLimits: 'no limit of the Project is reached' },
    False: {
      BudgetReached: 'the daily or monthly budget is used up',
      RunsReached: 'the runs of this UTC day are used up',
      SessionLimit: 'spec.limits.maxSessions unfinished sessions exist',
    },
    Unknown: { ControlPlaneUnavailable: 'the control plane has not been reachable for 30 seconds' },
    controlPlaneDown: 'Unknown',
  },
} as const satisfies Record<string, ConditionWords>;

const NO_SANDBOX = 'the Session has no pod';
const DAEMON_UNKNOWN = {
  DaemonUnreachable: 'the daemon missed three reports (30 seconds); the message has the time of its last answer',
  ControlPlaneUnavailable: 'the control plane has not been reachable for 30 seconds',
} as const;

/** Condition types of a Session, in the order they are listed (Ready first), with every reason. Source: 10-kubernetes §3. */
export const SESSION_CONDITIONS = {
  Ready: {
    True: {
      Ready: 'K13 holds: accepted, sandbox, workspace, harness and configuration are ready and the pod is routable',
    },
    False: {
      Pending: 'the Session is wanted and waits for the control plane or for its turn to be looked at',
      Queued: 'maxRunning of the Project or maxRunningSessions of the installation is reached, or starts are paced',
      NotAccepted: 'SpecAccepted is not True; the message repeats it',
      BudgetReached: 'a budget is used up, so no start happens',
      Starting: 'the pod of this attempt exists and is not ready yet',
      Restarting: 'the pod is being replaced because spec.restartToken changed',
      Suspending: 'the pod is being removed because the Session is suspended',
      Suspended: 'the Session is suspended; its files are kept if the workspace is Persistent',
      CoolingDown: 'a start failed and the next try waits; the message has its time',
      Failed: 'five failures, a Task that failed, or an error that stops the operator; the message says which',
      Disrupted: 'the sandbox was lost through no fault of the Session and is being replaced',
      Finished: 'the Session ended',
      Deleting: 'the Session is being deleted; the message names the step',
    },
    Unknown: {
      ...DAEMON_UNKNOWN,
      NodeLost: 'the node of the pod does not answer; the message says what an administrator can do',
    },
    controlPlaneDown: 'UnknownIfRunning',
  },
  SpecAccepted: {
    True: { Accepted: 'the Project, agent, model, template and resources exist and are allowed' },
    False: {
      ProjectNotFound: 'the namespace has no Project of the name spec.projectRef.name',
      ProjectNotReady:
        'the Project has no mirrored commit, never had a valid manifest, or lacks credentials or permission',
      ProjectSuspended: 'the Project is suspended',
      ProjectDeleting: 'the Project is being deleted',
      AgentUnknown: 'the manifest declares no enabled agent of this name',
      ModelInvalid: 'the model is unknown, disabled or not allowed; the message has the nearest names',
      TemplateUnknown: 'the manifest declares no sandbox template of this name',
      BranchNotAvailable: 'spec.branch.name is the base branch, or another unfinished Session works on it',
      ResourcesNotAllowed: 'spec.sandbox.resources are above maxResources of the Project',
      LimitReached: 'maxSessions of the Project is reached',
    },
    Unknown: {
      ControlPlaneUnavailable: 'the control plane has not been reachable for 30 seconds',
      RegistryUnavailable: 'the provider registry could not be read',
    },
    controlPlaneDown: 'Keeps',
  },
  SandboxReady: {
    True: { Running: 'the container of the pod runs' },
    False: {
      PolicyPending: 'the network policy has not been seen in the cache yet',
      VolumePending: 'the volume claim is not bound or not attached yet',
      Unschedulable: 'no node has room for the pod',
      SchedulingGated: 'a scheduling gate holds the pod; the start deadline stands still',
      ImagePulling: 'the image is being pulled',
      ImagePullFailed: 'the image cannot be pulled',
      Creating: 'the pod exists and its container has not started yet',
      Rejected: 'the API server refused the pod; the message is its text',
      NameTaken: 'an object with the name of a child exists and is not ours',
      Terminating: 'the pod is being deleted',
      NoSandbox: NO_SANDBOX,
    },
    Unknown: { NodeLost: 'the node of the pod does not answer' },
    controlPlaneDown: 'Keeps',
  },
  WorkspaceReady: {
    True: { CheckedOut: 'the checkout is on the session branch' },
    False: {
      Cloning: 'the repository is being cloned',
      CloneFailed: 'the clone failed; the message is the cause',
      WrongBranch: 'the checkout is on another branch than that of the Session',
      NoSandbox: NO_SANDBOX,
    },
    Unknown: DAEMON_UNKNOWN,
    controlPlaneDown: 'Unknown',
  },
  HarnessReady: {
    True: { Ready: 'the harness answers and takes turns' },
    False: {
      Starting: 'the harness is starting',
      BootError: 'the harness could not start; the message is its error',
      Down: 'the harness stopped',
      NoSandbox: NO_SANDBOX,
    },
    Unknown: DAEMON_UNKNOWN,
    controlPlaneDown: 'Unknown',
  },
  ConfigApplied: {
    True: {
      Applied: 'the desired release is applied and proven',
      FellBack: 'an older proven release or the image default serves; the message says why',
      ReleasesOff: 'the flag config_releases is off; the checkout is the configuration',
    },
    False: {
      Proving: 'the desired release is being applied and proven',
      ProofFailed: 'no release could be proven',
      NoSandbox: NO_SANDBOX,
    },
    Unknown: DAEMON_UNKNOWN,
    controlPlaneDown: 'Unknown',
  },
  Active: {
    True: { Working: 'a turn runs', WaitingForInput: 'a turn waits for the answer of a human' },
    False: { Idle: 'no turn runs', NoSandbox: NO_SANDBOX },
    Unknown: DAEMON_UNKNOWN,
    controlPlaneDown: 'Unknown',
  },
  Suspended: {
    True: {
      Requested: 'spec.operatingMode is Suspended',
      Idle: 'nothing happened for idleSuspendAfterSeconds; the next prompt wakes it',
      Budget: 'the budget of the Session is used up and limits.onReached is Suspend',
      ProjectSuspended: 'the Project is suspended',
    },
    False: { NotSuspended: 'the Session is not suspended' },
    Unknown: {},
    controlPlaneDown: 'Keeps',
  },
  Finished: {
    True: {
      Succeeded: 'the turn of a Task succeeded',
      Failed: 'a Task failed',
      Expired: 'maxLifetimeSeconds of an Interactive session is over',
    },
    False: { NotFinished: 'the Session has not ended' },
    Unknown: {},
    controlPlaneDown: 'Keeps',
  },
  FeaturesSupported: {
    True: { AllSupported: 'the harness obeys every key of the manifest' },
    False: { KeysIgnored: 'the harness ignores keys of the manifest; the message lists at most ten' },
    Unknown: { NotRead: 'the manifest has not been compared with the harness yet' },
    controlPlaneDown: 'Keeps',
  },
  NetworkIsolated: {
    True: { Enforced: 'a connection that the network policy forbids failed' },
    False: { NotEnforced: 'a connection that the network policy forbids succeeded' },
    Unknown: { NotProbed: 'the probe is off or has not ended' },
    controlPlaneDown: 'Keeps',
  },
  Disrupted: {
    True: {
      Drained: 'the node was drained',
      Preempted: 'a pod with a higher priority took the place',
      Evicted: 'the node was short of resources',
      NodeShutdown: 'the node was shut down',
      NodeLost: 'the node was lost',
    },
    False: { NotDisrupted: 'the sandbox was replaced after a disruption' },
    Unknown: {},
    controlPlaneDown: 'Keeps',
  },
} as const satisfies Record<string, ConditionWords>;

export type ProjectConditionType = keyof typeof PROJECT_CONDITIONS;

/** The closed list of reasons of Kubernetes Events about a Session. */
export const SESSION_EVENTS = [
  'SandboxCreated',
  'Ready',
  'StartFailed',
  'Suspended',
  'Woken',
  'Restarted',
  'HarnessChanged',
  'Disrupted',
  'Finished',
  'IsolationNotEnforced',
  'CleanupTimedOut',
] as const;
/** The closed list of reasons of Kubernetes Events about a Project. */
export const PROJECT_EVENTS = [
  'Synced',
  'ManifestInvalid',
  'ModelsInvalid',
  'ReleasePublished',
  'ReleaseQuarantined',
  'CredentialsMissing',
  'FeatureUnavailable',
  'DeletionBlocked',
] as const;
export type SessionEventReason = (typeof SESSION_EVENTS)[number];
export type ProjectEventReason = (typeof PROJECT_EVENTS)[number];
