// The project controller: its parts put together, what wakes it, and the rights it needs.
// Must not decide anything: plan.ts does. Source: 10-kubernetes §5.
import type { InformerPorts } from '#kube/informer.ts';
import type { Priority } from '#kube/queue.ts';
import { apiVersionOf, PROJECTS } from '#kube/resource-types.ts';
import type { ProjectStatus } from '#schema/resources/project.ts';
import { BY_NAMESPACE, BY_PROJECT } from '../runtime/caches.ts';
import type { Controller, RbacRule } from '../runtime/controller.ts';
import type { Facts } from '../runtime/facts.ts';
import { withFailed } from '../runtime/failed-condition.ts';
import { Pacer } from '../runtime/pacer.ts';
import { SecretWatch } from '../runtime/secret-watch.ts';
import type { ProjectAction } from './actions.ts';
import { projectStatusChange } from './major.ts';
import { ProjectMemory } from './memory.ts';
import { makeProjectObserve, type ObservePorts } from './observe.ts';
import type { ObservedProject } from './observed.ts';
import { makeProjectPerform, type PerformPorts } from './perform.ts';
import { planProject } from './plan.ts';
import { secretNames } from './secret-names.ts';

/** The rights of this controller. Source: 10-kubernetes §9. */
export const PROJECT_RBAC: readonly RbacRule[] = [
  { apiGroups: ['beeuni.dev'], resources: ['projects'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: ['beeuni.dev'], resources: ['projects/status'], verbs: ['patch'] },
  { apiGroups: ['beeuni.dev'], resources: ['projects/finalizers'], verbs: ['update'] },
  { apiGroups: ['beeuni.dev'], resources: ['sessions'], verbs: ['get', 'list', 'watch', 'delete'] },
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get', 'create', 'delete'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
];

/** Per namespace, where Projects may refer to Secrets: metadata is all that is asked for, which RBAC cannot say. */
export const SECRET_RULES: readonly RbacRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['list', 'watch'] },
];

/** What the controller needs; `add` and `addAfter` queue a key. */
export type ProjectControllerPorts = Omit<ObservePorts, 'memory' | 'facts' | 'client' | 'secrets'> &
  Omit<PerformPorts, 'memory' | 'facts'> &
  Readonly<{
    facts: Facts;
    informers: InformerPorts;
    add: (key: string, priority: Priority) => void;
    addAfter: (key: string, delayMs: number) => void;
  }>;

/** The controller with what goes beside it. */
export type ProjectController = Readonly<{
  controller: Controller<ObservedProject, ProjectAction, ProjectStatus>;
  /** Subscribes to what wakes Projects. To be called once, before the caches start. */
  subscribe: () => void;
  stop: () => Promise<void>;
}>;

/** Counts of Sessions are looked at so long after a change. Units: milliseconds. Source: 10-kubernetes §5. */
const COUNT_AFTER_MS = 10_000;
/** Projects that a control plane that comes or goes wakes. Source: 10-kubernetes §6. */
const CONTROL_PLANE_WAKES_PER_SECOND = 50;

/** The project controller over its ports. It does nothing before `subscribe`. */
export const makeProjectController = (ports: ProjectControllerPorts): ProjectController => {
  const { caches, facts, add, addAfter, clock } = ports;
  const memory = new ProjectMemory();
  const secrets = new SecretWatch(ports.informers, (namespace, name) => {
    for (const { key, value } of caches.projects.cache.byIndex(BY_NAMESPACE, namespace)) {
      if (name === '' || (value !== undefined && secretNames(value.spec).includes(name))) add(key, 'person');
    }
  });
  const observe = makeProjectObserve({ ...ports, memory, secrets });
  const { perform, writeStatus } = makeProjectPerform({ ...ports, memory });
  const wakes = new Pacer({ clock, perSecond: CONTROL_PLANE_WAKES_PER_SECOND, pass: (key) => add(key, 'resync') });

  const controller: ProjectController['controller'] = {
    name: 'project',
    observe,
    plan: planProject,
    perform,
    statusOnFailure: () => undefined,
    stalled: ({ project, now }, error) => ({
      ...project.status,
      conditions: withFailed(project.status?.conditions, error, project.metadata.generation, now),
    }),
    storedStatus: ({ project }) => project.status,
    compare: projectStatusChange,
    writeStatus,
    regarding: ({ project: { metadata } }) => ({
      apiVersion: apiVersionOf(PROJECTS),
      kind: PROJECTS.kind,
      namespace: metadata.namespace,
      name: metadata.name,
      uid: metadata.uid,
    }),
  };

  const subscribe = (): void => {
    let hasContact = false;
    caches.projects.subscribe((key) => add(key, 'person'));
    caches.sessions.subscribe(
      (key) => {
        if (caches.projects.cache.entry(key)?.deleting === true) return add(key, 'person');
        // The first and the last Session count at once: V4 refuses or allows a deletion by them.
        if (caches.sessions.cache.byIndex(BY_PROJECT, key).length <= 1) return add(key, 'resync');
        addAfter(key, COUNT_AFTER_MS);
      },
      ({ value, namespace }) => (value === undefined ? [] : [`${namespace}/${value.spec.projectRef.name}`]),
    );
    facts.subscribe((uid) => {
      if (uid === undefined) {
        const keys = [...caches.projects.cache.entries()].map(({ key }) => key);
        // The first contact only completes what this process knows; writes are spread when the control plane comes or goes.
        if (!hasContact && facts.controlPlane.state === 'available') for (const key of keys) add(key, 'resync');
        else wakes.add(keys);
        hasContact = true;
        return;
      }
      const project = caches.projects.cache.byUid(uid);
      if (project !== undefined) add(project.key, 'person');
    });
  };

  return {
    controller,
    subscribe,
    stop: async () => {
      wakes.stop();
      await secrets.stop();
    },
  };
};
