// The session controller: its parts put together, what wakes it, and the rights it needs.
// Must not decide anything: plan.ts does. Source: 10-kubernetes §5.
import type { Clock } from '#base/clock.ts';
import type { Priority } from '#kube/queue.ts';
import { apiVersionOf, SESSIONS } from '#kube/resource-types.ts';
import type { SessionStatus } from '#schema/resources/session.ts';
import { REGISTRY_UID } from '#schema/wire/sync.ts';
import { countStatus, type FleetCounters } from '../fleet-metrics.ts';
import { BY_PROJECT, sessionKeysOf } from '../runtime/caches.ts';
import { shortHash } from '../runtime/canonical.ts';
import type { Controller, RbacRule } from '../runtime/controller.ts';
import type { Facts } from '../runtime/facts.ts';
import { withFailed } from '../runtime/failed-condition.ts';
import { Pacer } from '../runtime/pacer.ts';
import type { SessionAction } from './actions.ts';
import { sessionStatusChange } from './major.ts';
import { SessionMemory } from './memory.ts';
import { makeSessionObserve, type ObservePorts, type SessionCaches } from './observe.ts';
import type { ObservedSession } from './observed.ts';
import { makeSessionPerform, type PerformPorts } from './perform.ts';
import { planSession, sessionFailure } from './plan.ts';
import { isRunning } from './pod-signs.ts';
import { StartSlots } from './start-slots.ts';
import { statusCounts } from './status-counts.ts';

/** The rights of this controller. Source: 10-kubernetes §9. */
export const SESSION_RBAC: readonly RbacRule[] = [
  { apiGroups: ['beeuni.dev'], resources: ['sessions'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: ['beeuni.dev'], resources: ['sessions/status'], verbs: ['patch'] },
  { apiGroups: ['beeuni.dev'], resources: ['sessions/finalizers'], verbs: ['update'] },
  { apiGroups: ['beeuni.dev'], resources: ['projects'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'create', 'delete'] },
  {
    apiGroups: [''],
    resources: ['persistentvolumeclaims'],
    verbs: ['get', 'list', 'watch', 'create', 'patch'],
  },
  {
    apiGroups: ['networking.k8s.io'],
    resources: ['networkpolicies'],
    verbs: ['get', 'list', 'watch', 'create', 'patch'],
  },
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get', 'create'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
];

/** What the controller needs; `add` queues a key. */
export type SessionControllerPorts = Omit<ObservePorts, 'slots' | 'memory' | 'facts' | 'onGone'> &
  Omit<PerformPorts, 'slots' | 'memory'> &
  Readonly<{
    facts: Facts;
    metrics: FleetCounters;
    add: (key: string, priority: Priority) => void;
  }>;

/** The controller with what goes beside it. */
export type SessionController = Readonly<{
  controller: Controller<ObservedSession, SessionAction, SessionStatus>;
  /** Subscribes to what wakes Sessions. To be called once, before the caches start. */
  subscribe: () => void;
  /** Counts the sandboxes that are there, so that no start is granted too many. To be called once, when caches are synced. */
  begin: () => void;
  queued: () => number;
  stop: () => void;
}>;

/** Sessions that a change of a Project or its facts wakes. Source: 10-kubernetes §5. */
const WAKES_PER_SECOND = 100;
/** Sessions that a control plane that comes or goes wakes. Source: 10-kubernetes §6. */
const CONTROL_PLANE_WAKES_PER_SECOND = 50;

const sandboxOf = (o: ObservedSession): 'starting' | 'running' | undefined => {
  if (o.pods.length === 0 && !o.unseen.pod) return undefined;
  const bound = o.pods.find(({ uid }) => uid === o.session.status?.pod?.uid);
  return o.session.status?.readyAt !== undefined && bound !== undefined ? 'running' : 'starting';
};

/** What of a Project gates or shapes starts, as one text. */
const projectSignature = (caches: SessionCaches, facts: Facts, key: string): string => {
  const project = caches.projects.cache.get(key);
  if (project === undefined) return '';
  const { metadata, status } = project;
  const fact = facts.project(metadata.uid);
  return shortHash([
    metadata.uid,
    metadata.generation,
    metadata.deletionTimestamp !== undefined,
    status?.observedGeneration === metadata.generation,
    (status?.conditions ?? [])
      .filter(({ type }) => type === 'CredentialsReady' || type === 'PolicyAccepted')
      .map(({ type, status: value, message }) => [type, value, message]),
    fact && [fact.manifest.lastValid, fact.models, fact.budget],
  ]);
};

/** The session controller over its ports. It does nothing before `subscribe`. */
export const makeSessionController = (
  ports: SessionControllerPorts & Readonly<{ clock: Clock }>,
): SessionController => {
  const { caches, facts, installation, add, clock } = ports;
  const memory = new SessionMemory();
  const slots = new StartSlots({
    limits: {
      running: installation.limits.maxRunningSessions,
      starts: installation.limits.maxConcurrentStarts,
      startsPerProject: installation.limits.maxConcurrentStartsPerProject,
    },
    wake: (key) => add(key, 'person'),
  });
  const { perform, writeStatus } = makeSessionPerform({ ...ports, slots, memory });
  const writeAndCount: typeof writeStatus = async (o, status, signal) => {
    await writeStatus(o, status, signal);
    for (const count of statusCounts(o.session.status, status)) countStatus(count, ports.metrics);
  };
  const projectWakes = new Pacer({ clock, perSecond: WAKES_PER_SECOND, pass: (key) => add(key, 'resync') });
  const factWakes = new Pacer({ clock, perSecond: CONTROL_PLANE_WAKES_PER_SECOND, pass: (key) => add(key, 'resync') });
  /** Sessions that wait until their Project has fewer, by Project. */
  const limited = new Map<string, Set<string>>();

  const projectKeyOf = ({ metadata, spec }: ObservedSession['session']): string =>
    `${metadata.namespace}/${spec.projectRef.name}`;

  const wakeLimited = (project: string): void => {
    const waiting = limited.get(project);
    limited.delete(project);
    for (const key of waiting ?? []) add(key, 'resync');
  };

  const look = makeSessionObserve({ ...ports, slots, memory, onGone: wakeLimited });

  const observe = async (key: string, signal: AbortSignal): Promise<ObservedSession | undefined> => {
    const o = await look(key, signal);
    if (o === undefined) return undefined;
    const project = projectKeyOf(o.session);
    const { uid } = o.session.metadata;
    slots.seen(uid, project, sandboxOf(o));
    slots.limit(uid, o.project?.spec.limits.maxRunning ?? 0);
    const isLimited = (o.unfinishedBefore ?? 0) >= (o.project?.spec.limits.maxSessions ?? Number.POSITIVE_INFINITY);
    if (isLimited || o.branchHeldBy !== undefined) limited.set(project, (limited.get(project) ?? new Set()).add(key));
    if (o.session.status?.finishedAt !== undefined || o.session.metadata.deletionTimestamp !== undefined) {
      wakeLimited(project);
    }
    return { ...o, slot: slots.slotOf(uid) };
  };

  const controller: SessionController['controller'] = {
    name: 'session',
    observe,
    plan: planSession,
    perform,
    statusOnFailure: (o, action, error) => sessionFailure(o, action, error.code, error.message),
    stalled: ({ session, now }, error) => ({
      ...session.status,
      conditions: withFailed(session.status?.conditions, error, session.metadata.generation, now),
    }),
    storedStatus: (o) => o.session.status,
    compare: sessionStatusChange,
    writeStatus: writeAndCount,
    regarding: ({ session: { metadata } }) => ({
      apiVersion: apiVersionOf(SESSIONS),
      kind: SESSIONS.kind,
      namespace: metadata.namespace,
      name: metadata.name,
      uid: metadata.uid,
    }),
  };

  const subscribe = (): void => {
    const person = (key: string) => add(key, 'person');
    const signatures = new Map<string, string>();
    let hasContact = false;
    const wakeProject = (key: string): void => {
      const signature = projectSignature(caches, facts, key);
      if ((signatures.get(key) ?? '') === signature) return;
      if (signature === '') signatures.delete(key);
      else signatures.set(key, signature);
      projectWakes.add(caches.sessions.cache.byIndex(BY_PROJECT, key).map((entry) => entry.key));
    };
    caches.sessions.subscribe(person);
    for (const children of [caches.pods, caches.networkPolicies, caches.volumes]) {
      children.subscribe(person, sessionKeysOf);
    }
    caches.projects.subscribe(wakeProject);
    facts.subscribe((uid) => {
      if (uid === undefined) {
        const keys = [...caches.sessions.cache.entries()].map((entry) => entry.key);
        // The first contact only completes what this process knows; writes are spread when the control plane comes or goes.
        if (!hasContact && facts.controlPlane.state === 'available') for (const key of keys) add(key, 'resync');
        else factWakes.add(keys);
        hasContact = true;
        return;
      }
      if (uid === REGISTRY_UID) {
        projectWakes.add([...caches.sessions.cache.entries()].map((entry) => entry.key));
        return;
      }
      const session = caches.sessions.cache.byUid(uid);
      if (session !== undefined) return add(session.key, 'person');
      const project = caches.projects.cache.byUid(uid);
      if (project !== undefined) wakeProject(project.key);
    });
  };

  const begin = (): void => {
    for (const { value, ownerUid } of caches.pods.cache.entries()) {
      const session = ownerUid === undefined ? undefined : caches.sessions.cache.byUid(ownerUid)?.value;
      if (session === undefined || value === undefined) continue;
      const stage = isRunning(value.seen) && session.status?.readyAt !== undefined ? 'running' : 'starting';
      slots.seen(session.metadata.uid, projectKeyOf(session), stage);
    }
  };

  return {
    controller,
    subscribe,
    begin,
    queued: () => slots.queued,
    stop: () => {
      projectWakes.stop();
      factWakes.stop();
    },
  };
};
