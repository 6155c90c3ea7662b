// Does what a Project plan asks for: one exhaustive switch. Every delete carries a uid, every apply body too.
// Must not decide anything. Source: 10-kubernetes §5, K23, K25.
import type { Clock } from '#base/clock.ts';
import type { Instruments } from '#base/metrics.ts';
import { apply, applyStatus, FIELD_MANAGERS } from '#kube/apply.ts';
import type { KubeClient } from '#kube/client.ts';
import { FINALIZERS } from '#kube/names.ts';
import { PROJECTS, SESSIONS } from '#kube/resource-types.ts';
import type { FLEET_METRICS } from '#schema/metrics.ts';
import { type Project, ProjectKind, type ProjectStatus } from '#schema/resources/project.ts';
import type { InternalApi } from '../internal-api.ts';
import type { Facts } from '../runtime/facts.ts';
import type { ServiceAccounts } from '../runtime/service-accounts.ts';
import type { ProjectAction } from './actions.ts';
import type { ProjectMemory } from './memory.ts';
import type { ObservedProject } from './observed.ts';

/** What performing needs. */
export type PerformPorts = Readonly<{
  client: KubeClient;
  api: InternalApi;
  facts: Pick<Facts, 'learn'>;
  serviceAccounts: ServiceAccounts;
  memory: ProjectMemory;
  clock: Clock;
  metrics: Pick<Instruments<typeof FLEET_METRICS>, 'projectSyncsTotal'>;
}>;

const identity = ({ metadata }: Project) => ({
  name: metadata.name,
  namespace: metadata.namespace,
  uid: metadata.uid,
});

/** The functions that change the world for Projects. */
export const makeProjectPerform = (ports: PerformPorts) => {
  const { client, api, facts, serviceAccounts, memory, clock, metrics } = ports;

  const setFinalizers = async (project: Project, finalizers: readonly string[], signal: AbortSignal) => {
    const body = { metadata: { ...identity(project), finalizers } };
    const options = { manager: FIELD_MANAGERS.operator, force: true, signal };
    memory.written.wrote(ProjectKind.object.parse(await apply(client, PROJECTS, body, options)));
  };

  /** A call that fails is asked for again by the queue's back-off, not by the memory of it. */
  const sync = async (
    { project }: ObservedProject,
    { request, features }: Extract<ProjectAction, { kind: 'syncProject' }>,
    signal: AbortSignal,
  ): Promise<void> => {
    const { namespace, name, uid } = project.metadata;
    try {
      const fact = await api.syncProject(namespace, name, request, signal);
      memory.asked.set(uid, {
        generation: request.generation,
        syncToken: request.syncToken,
        features,
        atMs: clock.monotonicMs(),
      });
      facts.learn(fact);
      metrics.projectSyncsTotal.inc({ result: fact.state });
    } catch (error) {
      metrics.projectSyncsTotal.inc({ result: 'failed' });
      throw error;
    }
  };

  const perform = async (o: ObservedProject, action: ProjectAction, signal: AbortSignal): Promise<void> => {
    const { namespace, uid } = o.project.metadata;
    switch (action.kind) {
      case 'addFinalizer':
        return setFinalizers(o.project, [FINALIZERS.project], signal);
      case 'releaseFinalizer':
        return setFinalizers(o.project, [], signal);
      case 'ensureServiceAccount':
        return serviceAccounts.ensure(namespace, signal);
      case 'removeServiceAccount':
        return serviceAccounts.remove(namespace, signal);
      case 'syncProject':
        return sync(o, action, signal);
      case 'tellSecret':
        await api.secretChanged(uid, action.name, action.version, signal);
        return memory.tellSecret(uid, action.name, action.version);
      case 'deleteSession':
        await client.delete(SESSIONS, { namespace, name: action.name }, { uid: action.uid, signal });
        return;
      case 'closeProject':
        return api.closeProject(uid, action.reason, signal);
    }
  };

  /** Writes the whole status. The resource version keeps it from a namesake. Errors: ConflictError. Source: K24. */
  const writeStatus = async (o: ObservedProject, status: ProjectStatus, signal: AbortSignal): Promise<void> => {
    const { project } = o;
    const body = { metadata: { ...identity(project), resourceVersion: project.metadata.resourceVersion }, status };
    const options = { manager: FIELD_MANAGERS.operatorStatus, force: true, signal };
    memory.written.wrote(ProjectKind.object.parse(await applyStatus(client, PROJECTS, body, options)));
  };

  return { perform, writeStatus };
};
