// Projects and Sessions as clients of the REST API read them. Pure: a projection of the stored object.
// Must not know who asks.
import type { Condition } from '#schema/resources/conditions.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import type { ProjectView } from '#schema/rest/projects.ts';
import type { SessionView } from '#schema/rest/sessions.ts';

const readyOf = (
  conditions: readonly Condition[] | undefined,
): Readonly<{ ready: 'True' | 'False' | 'Unknown'; readyReason: string | null; message: string | null }> => {
  const condition = conditions?.find(({ type }) => type === 'Ready');
  return condition === undefined
    ? { ready: 'Unknown', readyReason: null, message: null }
    : { ready: condition.status, readyReason: condition.reason, message: condition.message };
};

/** The view of a session; what the status does not say yet is null. `title` is kept elsewhere. */
export const sessionViewOf = ({ metadata, spec, status }: Session, title: string | null): SessionView => ({
  namespace: metadata.namespace,
  name: metadata.name,
  uid: metadata.uid,
  title,
  project: spec.projectRef.name,
  createdAt: metadata.creationTimestamp,
  phase: metadata.deletionTimestamp === undefined ? (status?.phase ?? null) : 'Deleting',
  ...readyOf(status?.conditions),
  harness: status?.harness?.id ?? null,
  agent: status?.agent?.name ?? spec.agent ?? null,
  model: status?.model?.name ?? spec.model ?? null,
  branch: status?.workspace?.branch ?? spec.branch?.name ?? null,
  commit: status?.workspace?.commit ?? null,
  activity: status?.activity?.state ?? null,
  spec: { ...spec },
  status: { ...status },
});

/** The view of a project; `harness` is the one of the status. */
export const projectViewOf = ({ metadata, spec, status }: Project): ProjectView => ({
  namespace: metadata.namespace,
  name: metadata.name,
  uid: metadata.uid,
  createdAt: metadata.creationTimestamp,
  phase: metadata.deletionTimestamp === undefined ? (status?.phase ?? null) : 'Deleting',
  ...readyOf(status?.conditions),
  repositoryUrl: spec.repository.url,
  commit: status?.repository?.commit ?? null,
  harness: status?.harness?.id ?? null,
  spec: { ...spec },
  status: { ...status },
});
