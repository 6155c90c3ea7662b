// The plan of a Project: finalizer, service account, sync, status; and its deletion, blocked or cascading. Pure.
// Must not know clients, clocks or logs. Source: 10-kubernetes §4 (Project finalizer), §5, §6.
import { FINALIZERS } from '#kube/names.ts';
import type { ProjectStatus } from '#schema/resources/project.ts';
import type { Plan } from '../runtime/controller.ts';
import { timeMs } from '../runtime/time.ts';
import type { ProjectAction } from './actions.ts';
import { projectNotes } from './notes.ts';
import type { ObservedProject } from './observed.ts';
import { projectStatus } from './status.ts';
import { ASK_AGAIN_MS, isAnswered, syncActions } from './sync.ts';

/** A plan of this controller. */
export type ProjectPlan = Plan<ProjectAction, ProjectStatus>;

/** Sessions that a cascade deletes in one second. Source: 10-kubernetes §4. */
const CASCADE_PER_SECOND = 20;
const SECOND_MS = 1_000;
/** So long after the delete the finalizer goes without the control plane. Units: milliseconds. */
const CLEANUP_LIMIT_MS = 300_000;

/** Notices of Secrets that changed. Source: 10-kubernetes §6, rotation. */
const secretActions = (o: ObservedProject): ProjectAction[] =>
  o.controlPlane.state !== 'available'
    ? []
    : o.secrets
        .filter(({ version, told }) => version !== told)
        .map(({ name, version }) => ({ kind: 'tellSecret', name, version }));

const letGo = (o: ObservedProject, withControlPlane: boolean): ProjectAction[] => [
  ...(withControlPlane ? [{ kind: 'closeProject', reason: 'deleted' } as const] : []),
  ...(o.lastOfNamespace ? [{ kind: 'removeServiceAccount' } as const] : []),
  { kind: 'releaseFinalizer' },
];

const planDeletion = (o: ObservedProject): ProjectPlan => {
  const { metadata, spec } = o.project;
  const nothing: ProjectPlan = {
    actions: [],
    status: undefined,
    inTransit: false,
    events: [],
    recheckAfterMs: undefined,
  };
  if (!metadata.finalizers.includes(FINALIZERS.project)) return nothing;
  const status = projectStatus(o);
  const waits: ProjectPlan = { ...nothing, status, events: projectNotes(o, status) };
  if (o.sessions.length > 0) {
    if (spec.deletionPolicy === 'Block') return waits;
    const doomed = o.sessions.filter(({ deleting }) => !deleting);
    const actions = doomed
      .slice(0, CASCADE_PER_SECOND)
      .map(({ name, uid }): ProjectAction => ({ kind: 'deleteSession', name, uid }));
    return { ...waits, actions, recheckAfterMs: doomed.length > CASCADE_PER_SECOND ? SECOND_MS : undefined };
  }
  if (o.controlPlane.state !== 'down') return { ...nothing, actions: letGo(o, true) };
  const leftMs = (timeMs(metadata.deletionTimestamp) ?? o.now) + CLEANUP_LIMIT_MS - o.now;
  return leftMs > 0 ? { ...waits, recheckAfterMs: leftMs } : { ...nothing, actions: letGo(o, false) };
};

/** Actions, status and events for what was observed. A converged Project has no actions and the status that it has. */
export const planProject = (o: ObservedProject): ProjectPlan => {
  if (o.project.metadata.deletionTimestamp !== undefined) return planDeletion(o);
  const actions: ProjectAction[] = [];
  if (!o.project.metadata.finalizers.includes(FINALIZERS.project)) actions.push({ kind: 'addFinalizer' });
  if (!o.serviceAccountSeen) actions.push({ kind: 'ensureServiceAccount' });
  const sync = syncActions(o);
  actions.push(...sync, ...secretActions(o));
  const status = projectStatus(o);
  const isOpen = !isAnswered(o) && o.controlPlane.state !== 'down';
  const asksAgainMs = isOpen && o.asked !== undefined ? Math.max(0, ASK_AGAIN_MS - o.asked.agoMs) : undefined;
  return {
    actions,
    status,
    inTransit: isOpen,
    events: projectNotes(o, status),
    recheckAfterMs: sync.length > 0 ? 0 : asksAgainMs,
  };
};
