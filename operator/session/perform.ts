// Does what a Session plan asks for: one exhaustive switch. Every delete carries a uid, every apply body too.
// Must not decide anything. Source: 10-kubernetes §5, K22, K23, K25, K28.
import type { Clock } from '#base/clock.ts';
import { ForbiddenError, InvalidError } from '#base/errors.ts';
import { apply, applyStatus, FIELD_MANAGERS } from '#kube/apply.ts';
import type { KubeClient } from '#kube/client.ts';
import { isAlreadyExists } from '#kube/errors.ts';
import { FINALIZERS, LABELS } from '#kube/names.ts';
import type { OwnWrites } from '#kube/own-writes.ts';
import { isOwnedBy } from '#kube/owner.ts';
import {
  type KubeObject,
  keyOf,
  NETWORK_POLICIES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  type ResourceType,
  SESSIONS,
} from '#kube/resource-types.ts';
import { type Session, SessionKind, type SessionStatus } from '#schema/resources/session.ts';
import type { InternalApi } from '../internal-api.ts';
import type { ServiceAccounts } from '../runtime/service-accounts.ts';
import type { SessionAction } from './actions.ts';
import type { SessionMemory } from './memory.ts';
import type { ObservedSession } from './observed.ts';
import type { StartSlots } from './start-slots.ts';

/** What performing needs. */
export type PerformPorts = Readonly<{
  client: KubeClient;
  api: InternalApi;
  ownWrites: OwnWrites;
  serviceAccounts: ServiceAccounts;
  slots: StartSlots;
  memory: SessionMemory;
  clock: Clock;
}>;

const MANAGER = FIELD_MANAGERS.operator;

/** Identity of a Session in an apply body. The uid keeps an apply from making a new one. Source: K23. */
const identity = ({ metadata }: Session) => ({
  name: metadata.name,
  namespace: metadata.namespace,
  uid: metadata.uid,
});

/** Whether an object that has the name of a child is that child. A retained volume is known by its label. Source: K22. */
const isOurs = (type: ResourceType, found: KubeObject, uid: string): boolean =>
  isOwnedBy(found.metadata, uid) ||
  (type.kind === PERSISTENT_VOLUME_CLAIMS.kind &&
    !(found.metadata.ownerReferences ?? []).some((owner) => owner.controller === true) &&
    found.metadata.labels?.[LABELS.sessionUid] === uid);

/** The functions that change the world for Sessions. */
export const makeSessionPerform = (ports: PerformPorts) => {
  const { client, api, ownWrites, serviceAccounts, slots, memory, clock } = ports;

  /** Creates a child; one of ours that is there already is adopted. Errors: ConflictError `already_exists`. */
  const create = async (
    o: ObservedSession,
    type: ResourceType,
    object: KubeObject,
    signal: AbortSignal,
  ): Promise<Readonly<{ found: KubeObject; adopted: boolean }>> => {
    const { uid } = o.session.metadata;
    try {
      const made = await client.create(type, object, { manager: MANAGER, signal });
      ownWrites.created(type.kind, keyOf(made.metadata), made.metadata.uid ?? '');
      return { found: made, adopted: false };
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const found = await client.get(type, object.metadata, { signal });
      if (found === undefined || !isOurs(type, found, uid)) throw error;
      ownWrites.created(type.kind, keyOf(found.metadata), found.metadata.uid ?? '');
      return { found, adopted: true };
    }
  };

  const applyPolicy = async (o: ObservedSession, object: KubeObject, exists: boolean, signal: AbortSignal) => {
    let uid = o.networkPolicy?.uid;
    if (!exists) {
      const { found, adopted } = await create(o, NETWORK_POLICIES, object, signal);
      if (!adopted) return;
      uid = found.metadata.uid;
    }
    const body = { ...object, metadata: { ...object.metadata, uid } };
    const applied = await apply(client, NETWORK_POLICIES, body, { manager: MANAGER, force: true, signal });
    ownWrites.applied(NETWORK_POLICIES.kind, keyOf(applied.metadata), applied.metadata.resourceVersion ?? '');
  };

  const createPod = async (o: ObservedSession, object: KubeObject, signal: AbortSignal): Promise<void> => {
    try {
      await create(o, PODS, object, signal);
    } catch (error) {
      // The service account may be what was missing.
      if (error instanceof ForbiddenError || error instanceof InvalidError) {
        serviceAccounts.forget(o.session.metadata.namespace);
      }
      throw error;
    }
  };

  const setFinalizers = async (session: Session, finalizers: readonly string[], signal: AbortSignal) => {
    const body = { metadata: { ...identity(session), finalizers } };
    const stored = await apply(client, SESSIONS, body, { manager: MANAGER, force: true, signal });
    memory.wrote(SessionKind.object.parse(stored));
  };

  /** The one switch over actions. */
  const perform = async (o: ObservedSession, action: SessionAction, signal: AbortSignal): Promise<void> => {
    const { session } = o;
    const { namespace, name, uid } = session.metadata;
    switch (action.kind) {
      case 'addFinalizer':
        return setFinalizers(session, [FINALIZERS.session], signal);
      case 'releaseFinalizer':
        return setFinalizers(session, [], signal);
      case 'ensureServiceAccount':
        return serviceAccounts.ensure(namespace, signal);
      case 'applyNetworkPolicy':
        return applyPolicy(o, action.object, action.exists, signal);
      case 'createVolume':
        await create(o, PERSISTENT_VOLUME_CLAIMS, action.object, signal);
        return;
      case 'retainVolume': {
        const metadata = { namespace, name: action.name, uid: action.uid, labels: { [LABELS.retained]: 'true' } };
        await apply(client, PERSISTENT_VOLUME_CLAIMS, { metadata }, { manager: MANAGER, force: true, signal });
        return;
      }
      case 'createPod':
        return createPod(o, action.object, signal);
      case 'deletePod': {
        const ref = { namespace, name: action.name };
        await client.delete(PODS, ref, { uid: action.uid, graceSeconds: action.graceSeconds, signal });
        ownWrites.deleted(PODS.kind, keyOf(ref), action.uid);
        return;
      }
      case 'requestSlot':
        return slots.request({
          uid,
          key: `${namespace}/${name}`,
          project: `${namespace}/${session.spec.projectRef.name}`,
          maxRunning: o.project?.spec.limits.maxRunning ?? 0,
          sinceMs: o.session.status?.pod === undefined ? Date.parse(session.metadata.creationTimestamp) : o.now,
        });
      case 'releaseSlot':
        return slots.release(uid);
      case 'stopSession': {
        const { kind: _kind, ...request } = action;
        const before = memory.of(session).stop;
        const askedMs = before?.podUid === action.podUid ? before.askedMs : clock.monotonicMs();
        const state = await api.stopSession(uid, request, signal);
        memory.of(session).stop = { podUid: action.podUid, state, askedMs };
        return;
      }
      case 'reportPodGone':
        await api.reportPodGone(uid, action.podUid, action.reason, signal);
        return memory.reportedGone(session, action.podUid);
      case 'closeSession':
        return api.closeSession(uid, action.reason, signal);
      case 'noteDue':
        memory.of(session).dueSinceMs ??= clock.monotonicMs();
        return;
      case 'forgetDue':
        memory.of(session).dueSinceMs = undefined;
        return;
      case 'deleteSession':
        await client.delete(SESSIONS, { namespace, name }, { uid, signal });
        return;
    }
  };

  /** Writes the whole status. The resource version keeps it from a namesake. Errors: ConflictError. Source: K24. */
  const writeStatus = async (o: ObservedSession, status: SessionStatus, signal: AbortSignal): Promise<void> => {
    const { session } = o;
    const body = { metadata: { ...identity(session), resourceVersion: session.metadata.resourceVersion }, status };
    const options = { manager: FIELD_MANAGERS.operatorStatus, force: true, signal };
    memory.wrote(SessionKind.object.parse(await applyStatus(client, SESSIONS, body, options)));
  };

  return { perform, writeStatus };
};
