// Builders of what the session controller observes, with defaults: a synced Project, an installation, facts, pods.
// Each gives a fresh object; the caller changes what its case is about.
import { ANNOTATIONS, LABELS, podName } from '#kube/names.ts';
import type { KubeObject } from '#kube/resource-types.ts';
import type { ObservedPod, ObservedSession } from '#operator/session/observed.ts';
import { readPod } from '#operator/session/read-pod.ts';
import { type Installation, type InstallationInput, InstallationSchema } from '#schema/installation.ts';
import { type Project, ProjectKind, type ProjectSpecInput, type ProjectStatus } from '#schema/resources/project.ts';
import { type Session, SessionKind, type SessionSpecInput, type SessionStatus } from '#schema/resources/session.ts';
import { type ProjectFact, REGISTRY_UID, type RegistryFact, type SessionFact } from '#schema/wire/sync.ts';

/** The time that fixtures call now: 2026-11-30T12:00:00Z. Units: milliseconds. */
export const NOON_MS = Date.UTC(2026, 10, 30, 12, 0, 0);
/** Uid of the Session of the fixtures. */
export const SESSION_UID = 'a1b2c3d4-0000-4000-8000-000000000001';
const PROJECT_UID = 'b1b2c3d4-0000-4000-8000-000000000002';
const COMMIT = '4b71d0a9c3e84b71d0a9c3e84b71d0a9c3e84b71';
const RELEASE = '4b71d0a9c3e8aaaabbbbccccddddeeeeffff0000111122223333444455556666';

/** RFC 3339, `seconds` after noon. */
export const at = (seconds: number): string => `${new Date(NOON_MS + seconds * 1_000).toISOString().slice(0, 19)}Z`;

/** An installation with `changes` over the least that is needed. */
export const anInstallation = (changes: Partial<InstallationInput> = {}): Installation =>
  InstallationSchema.parse({
    sandbox: { image: 'registry.example.com/beeuni/sandbox:1.0.0' },
    controlPlane: {
      sandboxUrl: 'http://beeuni-control-plane.beeuni.svc:8081',
      namespace: 'beeuni',
      podLabels: { 'app.kubernetes.io/component': 'control-plane' },
    },
    ...changes,
  });

/** A Project that was looked at and is fine. */
export const aProject = (
  spec: Partial<ProjectSpecInput> = {},
  changes: Readonly<{ status?: Partial<ProjectStatus>; deleting?: boolean; generation?: number }> = {},
): Project =>
  ProjectKind.object.parse({
    apiVersion: ProjectKind.apiVersion,
    kind: 'Project',
    metadata: {
      name: 'shop',
      namespace: 'team-a',
      uid: PROJECT_UID,
      resourceVersion: '10',
      generation: changes.generation ?? 1,
      creationTimestamp: at(-86_400),
      ...(changes.deleting === true ? { deletionTimestamp: at(-1) } : {}),
    },
    spec: { repository: { url: 'https://git.example.com/shop.git' }, ...spec },
    status: {
      observedGeneration: changes.generation ?? 1,
      conditions: ['CredentialsReady', 'PolicyAccepted'].map((type) => ({
        type,
        status: 'True',
        reason: type === 'CredentialsReady' ? 'NotNeeded' : 'Accepted',
        message: '',
        lastTransitionTime: at(-86_400),
      })),
      ...changes.status,
    },
  });

type ManifestChanges = Partial<NonNullable<ProjectFact['manifest']['lastValid']>>;

/** What the control plane knows of that Project; `manifest` changes the last valid one. */
export const aProjectFact = (changes: Partial<ProjectFact> = {}, manifest: ManifestChanges = {}): ProjectFact => ({
  kind: 'project',
  uid: PROJECT_UID,
  generation: 1,
  syncToken: null,
  state: 'done',
  repository: { reason: 'Synced', message: '', defaultBranch: 'main', commit: COMMIT },
  credentials: { reason: 'NotNeeded', message: '' },
  manifest: {
    path: 'beeuni.yaml',
    reason: 'Valid',
    version: 2,
    hash: 'abc',
    errors: [],
    warnings: [],
    lastValid: {
      commit: COMMIT,
      runtime: null,
      defaultAgent: 'coder',
      agents: [{ name: 'coder', mode: 'primary', model: null, template: null, secrets: 'none' }],
      templates: [],
      defaultTemplate: null,
      ignoredKeys: {},
      ...manifest,
    },
  },
  models: {
    reason: 'AllKnown',
    message: '',
    default: 'acme/coder-large',
    platform: 'acme/coder-large',
    registryGeneration: 3,
    invalid: [],
  },
  release: { reason: 'Published', current: RELEASE, commit: COMMIT },
  budget: { reached: false, runsReached: false, message: '' },
  ...changes,
});

/** A Session that was created a minute before noon. */
export const aSession = (
  spec: Partial<SessionSpecInput> = {},
  changes: Readonly<{
    status?: SessionStatus;
    deletingSince?: string;
    generation?: number;
    finalizers?: readonly string[];
  }> = {},
): Session =>
  SessionKind.object.parse({
    apiVersion: SessionKind.apiVersion,
    kind: 'Session',
    metadata: {
      name: 'fix-login',
      namespace: 'team-a',
      uid: SESSION_UID,
      resourceVersion: '20',
      generation: changes.generation ?? 1,
      creationTimestamp: at(-60),
      finalizers: changes.finalizers ?? [],
      ...(changes.deletingSince === undefined ? {} : { deletionTimestamp: changes.deletingSince }),
    },
    spec: { projectRef: { name: 'shop' }, ...spec },
    status: changes.status,
  });

type Health = NonNullable<SessionFact['health']>;

/** The health that a ready daemon reports. */
export const aHealth = (changes: Partial<Health> = {}): Health => ({
  state: 'Answering',
  lastAnswerAt: at(0),
  runtimeReady: true,
  repoReady: true,
  branch: 'beeuni/fix-login-a1b2c',
  commit: COMMIT,
  pushError: null,
  bootError: null,
  bootErrorCategory: null,
  harness: { id: 'opencode', version: '1.18.33', state: 'ok', ready: true, error: null },
  capabilities: ['file.import', 'session.subagents', 'session.compact'],
  config: {
    release_id: RELEASE,
    desired_release_id: RELEASE,
    source: 'release',
    mode: 'release',
    proven: true,
    fallback_reason: null,
    failed_release_id: null,
  },
  isolation: 'enforced',
  ...changes,
});

/** The facts of a Session whose pod has the uid `podUid`. */
export const aSessionFact = (podUid: string | null, changes: Partial<SessionFact> = {}): SessionFact => ({
  kind: 'session',
  uid: SESSION_UID,
  podUid,
  generation: podUid === null ? 0 : 1,
  health: podUid === null ? null : aHealth(),
  activity: podUid === null ? null : { state: 'Idle', since: at(0), turnId: null },
  idleSince: null,
  lastTurn: null,
  specPromptFinal: null,
  wanted: false,
  fencedPodUid: null,
  budgetReached: false,
  ...changes,
});

/** Uid of the pod of an attempt. */
export const podUid = (attempt: number): string => `c0000000-0000-4000-8000-00000000000${attempt}`;

/** JSON of a pod that runs and is ready, as a kubelet writes it. `status` replaces the status. */
export const aRunningPodJson = (attempt = 1, status?: Readonly<Record<string, unknown>>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: podName('fix-login', SESSION_UID, attempt),
    namespace: 'team-a',
    uid: podUid(attempt),
    resourceVersion: '30',
    creationTimestamp: at(-30),
    labels: { [LABELS.harness]: 'opencode' },
    annotations: {
      [ANNOTATIONS.attempt]: String(attempt),
      [ANNOTATIONS.harnessReason]: 'default',
      [ANNOTATIONS.gateway]: 'on',
      [ANNOTATIONS.podHash]: '0123456789abcdef',
    },
  },
  spec: { nodeName: 'node-1', containers: [{ name: 'sandbox', image: 'registry.example.com/beeuni/sandbox:1.0.0' }] },
  status: status ?? {
    phase: 'Running',
    podIP: '10.1.2.3',
    conditions: [
      { type: 'PodScheduled', status: 'True' },
      { type: 'ContainersReady', status: 'True' },
      { type: 'Ready', status: 'True' },
    ],
    containerStatuses: [
      { name: 'sandbox', imageID: 'registry.example.com/beeuni/sandbox@sha256:11', state: { running: {} } },
    ],
  },
});

/** What plans read of a running pod, with `changes`. */
export const aPod = (attempt = 1, changes: Partial<ObservedPod> = {}): ObservedPod => ({
  ...readPod(aRunningPodJson(attempt)),
  ...changes,
});

/** A pod that exists and has no node yet. */
export const aNewPod = (attempt = 1, changes: Partial<ObservedPod> = {}): ObservedPod =>
  aPod(attempt, {
    phase: 'Pending',
    node: undefined,
    ip: undefined,
    imageID: undefined,
    ready: undefined,
    scheduled: undefined,
    containersReady: false,
    container: undefined,
    createdMs: NOON_MS - 1_000,
    ...changes,
  });

/** The names of a registry with one usable model. */
export const aRegistryFact = (): RegistryFact => ({
  kind: 'registry',
  uid: REGISTRY_UID,
  generation: 3,
  providers: [{ id: 'acme', enabled: true, models: [{ id: 'coder-large', enabled: true }] }],
});

/** What is observed of a Session that nobody has looked at yet. */
export const observed = (changes: Partial<ObservedSession> = {}): ObservedSession => ({
  now: NOON_MS,
  session: aSession(),
  project: aProject(),
  projectFact: aProjectFact(),
  fact: undefined,
  registry: aRegistryFact(),
  controlPlane: { state: 'available', lastContactMs: NOON_MS - 1_000 },
  networkPolicy: undefined,
  volume: undefined,
  pods: [],
  unseen: { networkPolicy: false, volume: false, pod: false },
  serviceAccountSeen: true,
  slot: { state: 'none' },
  unfinishedBefore: 0,
  branchHeldBy: undefined,
  stop: undefined,
  reportedGone: [],
  dueForDeletionMs: undefined,
  installation: anInstallation(),
  version: '0.1.0',
  ...changes,
});
