// Everything that a Session plan looks at, from caches, facts and this process's memory. Must not decide anything.
// The one read outside the caches: whether a Project that the cache does not have is really gone.
import type { Clock } from '#base/clock.ts';
import { deepFreeze } from '#kube/cache.ts';
import type { KubeClient } from '#kube/client.ts';
import { childName, podName } from '#kube/names.ts';
import type { OwnWrites } from '#kube/own-writes.ts';
import { NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS, PODS, PROJECTS, SESSIONS } from '#kube/resource-types.ts';
import type { Installation } from '#schema/installation.ts';
import { type Project, ProjectKind } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import { BY_PROJECT, BY_SESSION, type Caches } from '../runtime/caches.ts';
import type { Facts } from '../runtime/facts.ts';
import type { ServiceAccounts } from '../runtime/service-accounts.ts';
import { sayUnreadable } from '../runtime/unreadable.ts';
import type { SessionMemory } from './memory.ts';
import type { ObservedNetworkPolicy, ObservedPod, ObservedSession, ObservedVolume } from './observed.ts';
import type { StartSlots } from './start-slots.ts';

/** The caches with this controller's readers. */
export type SessionCaches = Caches<ObservedPod, ObservedNetworkPolicy, ObservedVolume>;

/** What observing needs. */
export type ObservePorts = Readonly<{
  client: KubeClient;
  caches: SessionCaches;
  facts: Pick<Facts, 'project' | 'session' | 'registry' | 'controlPlane'>;
  ownWrites: OwnWrites;
  serviceAccounts: ServiceAccounts;
  slots: StartSlots;
  memory: SessionMemory;
  clock: Clock;
  installation: Installation;
  version: string;
  /** Called with the Project (`namespace/name`) of a Session that is gone. */
  onGone: (project: string) => void;
}>;

/** True once the Session has ended or is on its way out: it does not count against maxSessions. */
const isUnfinished = (session: Session): boolean =>
  session.status?.finishedAt === undefined && session.metadata.deletionTimestamp === undefined;

const wasAccepted = (session: Session): boolean =>
  session.status?.conditions?.some(({ type, status }) => type === 'SpecAccepted' && status === 'True') === true;

const comesBefore = (a: Session, b: Session): boolean => {
  const [first, second] = [a.metadata, b.metadata];
  return first.creationTimestamp === second.creationTimestamp
    ? first.uid < second.uid
    : first.creationTimestamp < second.creationTimestamp;
};

/** Whether a Session was asked to work, or works, on a branch; false for a branch of its own name. */
const worksOn = ({ spec, status }: Session, branch: string | undefined): boolean =>
  branch !== undefined && (spec.branch?.name === branch || status?.workspace?.branch === branch);

/** The observe function of the session controller. */
export const makeSessionObserve = (ports: ObservePorts) => {
  const { client, caches, facts, ownWrites, serviceAccounts, slots, memory, clock, installation, version, onGone } =
    ports;

  const fetchProject = async (namespace: string, name: string, signal: AbortSignal): Promise<Project | undefined> => {
    const cached = caches.projects.cache.get(`${namespace}/${name}`);
    if (cached !== undefined) return cached;
    const found = await client.get(PROJECTS, { namespace, name }, { signal });
    return found === undefined ? undefined : ProjectKind.object.parse(found);
  };

  /** Unfinished Sessions of the Project that were there before; undefined for one that was accepted: it is not asked again. */
  const rivals = (session: Session): readonly Session[] | undefined => {
    if (wasAccepted(session)) return undefined;
    const { namespace, uid } = session.metadata;
    const siblings = caches.sessions.cache.byIndex(BY_PROJECT, `${namespace}/${session.spec.projectRef.name}`);
    return siblings.flatMap(({ value }) => {
      if (value === undefined || value.metadata.uid === uid || !isUnfinished(value)) return [];
      return wasAccepted(value) || comesBefore(value, session) ? [value] : [];
    });
  };

  const podsOf = (uid: string): ObservedPod[] =>
    caches.pods.cache.byOwner(uid).flatMap(({ key, value }) => {
      if (value === undefined) return [];
      const { seen } = value;
      const isDeleted = !seen.deleting && ownWrites.deletedUnseen(PODS.kind, key, seen.uid);
      return [isDeleted ? { ...seen, deleting: true } : seen];
    });

  const createdUnseen = (kind: string, key: string, isShown: (uid: string) => boolean): boolean => {
    const uid = ownWrites.createdUnseen(kind, key);
    if (uid === undefined) return false;
    const shown = isShown(uid);
    // The event came before the answer to the create.
    if (shown) ownWrites.seen(kind, key, uid, false);
    return !shown;
  };

  /** Own writes that the caches do not show yet. Names are those that this Session gives; an answer may come before its event. */
  const unseen = (session: Session, attempts: number, policyVersion: string | undefined): ObservedSession['unseen'] => {
    const { namespace, name, uid } = session.metadata;
    const child = `${namespace}/${childName(name, uid)}`;
    const pod = `${namespace}/${podName(name, uid, attempts + 1)}`;
    const { pods, networkPolicies, volumes } = caches;
    return {
      pod: createdUnseen(PODS.kind, pod, (made) => pods.cache.byUid(made) !== undefined),
      volume: createdUnseen(PERSISTENT_VOLUME_CLAIMS.kind, child, (made) => volumes.cache.byUid(made) !== undefined),
      networkPolicy:
        createdUnseen(NETWORK_POLICIES.kind, child, (made) => networkPolicies.cache.byUid(made) !== undefined) ||
        (policyVersion !== undefined && ownWrites.appliedUnseen(NETWORK_POLICIES.kind, child, policyVersion)),
    };
  };

  const stopOf = (session: Session): ObservedSession['stop'] => {
    const { stop } = memory.of(session);
    if (stop === undefined) return undefined;
    return { podUid: stop.podUid, state: stop.state, askedAgoMs: clock.monotonicMs() - stop.askedMs };
  };

  /** The record of a key; undefined when there is no such Session. Errors: InvalidError for one that cannot be read. */
  return async (key: string, signal: AbortSignal): Promise<ObservedSession | undefined> => {
    const entry = caches.sessions.cache.entry(key);
    const forgotten = memory.forget(key, entry?.uid);
    if (forgotten !== undefined) {
      slots.forget(forgotten.uid);
      onGone(forgotten.project);
    }
    if (entry === undefined) return undefined;
    if (entry.value === undefined) {
      throw await sayUnreadable(client, SESSIONS, entry, entry.problem, signal);
    }
    const session = memory.newest(entry.value);
    const { namespace, uid } = session.metadata;
    const project = await fetchProject(namespace, session.spec.projectRef.name, signal);
    const pods = podsOf(uid);
    const policy = caches.networkPolicies.cache.byOwner(uid)[0];
    const volume = caches.volumes.cache.byIndex(BY_SESSION, uid)[0];
    const { dueSinceMs, reportedGone } = memory.of(session);
    const before = rivals(session);
    const attempts = Math.max(session.status?.pod?.attempt ?? 0, ...pods.map((pod) => pod.attempt));
    return deepFreeze({
      now: client.serverNowMs(),
      session,
      project,
      projectFact: project === undefined ? undefined : facts.project(project.metadata.uid),
      fact: facts.session(uid),
      registry: facts.registry,
      controlPlane: facts.controlPlane,
      networkPolicy: policy?.value?.seen,
      volume: volume?.value?.seen,
      pods,
      unseen: unseen(session, attempts, policy?.resourceVersion),
      serviceAccountSeen: serviceAccounts.isSeen(namespace),
      slot: slots.slotOf(uid),
      unfinishedBefore: before?.length,
      branchHeldBy: before?.find((other) => worksOn(other, session.spec.branch?.name))?.metadata.name,
      stop: stopOf(session),
      reportedGone: [...reportedGone],
      dueForDeletionMs: dueSinceMs === undefined ? undefined : clock.monotonicMs() - dueSinceMs,
      installation,
      version,
    });
  };
};
