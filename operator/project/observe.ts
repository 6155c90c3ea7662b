// Everything that a Project plan looks at, from caches, facts and this process's memory. Must not decide anything.
import type { Clock } from '#base/clock.ts';
import { deepFreeze } from '#kube/cache.ts';
import type { KubeClient } from '#kube/client.ts';
import { PROJECTS } from '#kube/resource-types.ts';
import type { Installation } from '#schema/installation.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import { BY_NAMESPACE, BY_PROJECT, type Caches } from '../runtime/caches.ts';
import type { Facts } from '../runtime/facts.ts';
import type { SecretWatch } from '../runtime/secret-watch.ts';
import type { ServiceAccounts } from '../runtime/service-accounts.ts';
import { sayUnreadable } from '../runtime/unreadable.ts';
import type { ProjectMemory } from './memory.ts';
import type { ObservedProject, ObservedProjectSession, ObservedSecret } from './observed.ts';
import { secretNames } from './secret-names.ts';

/** What observing needs. */
export type ObservePorts = Readonly<{
  client: KubeClient;
  caches: Pick<Caches<unknown, unknown, unknown>, 'projects' | 'sessions'>;
  facts: Pick<Facts, 'project' | 'controlPlane'>;
  serviceAccounts: ServiceAccounts;
  memory: ProjectMemory;
  secrets: SecretWatch;
  clock: Clock;
  installation: Installation;
}>;

const counted = ({ metadata, status }: Session): ObservedProjectSession => ({
  name: metadata.name,
  uid: metadata.uid,
  deleting: metadata.deletionTimestamp !== undefined,
  finished: status?.finishedAt !== undefined,
  hasPod: status?.pod?.uid !== undefined,
  phase: status?.phase,
});

const secretsOf = ({ metadata, spec }: Project, memory: ProjectMemory, secrets: SecretWatch): ObservedSecret[] => {
  const versions = secrets.versions(metadata.namespace, secretNames(spec)) ?? new Map<string, string>();
  return [...versions].map(([name, version]) => ({
    name,
    version,
    told: memory.toldSecret(metadata.uid, name, version),
  }));
};

/** The observe function of the project controller. */
export const makeProjectObserve =
  ({ client, caches, facts, serviceAccounts, memory, secrets, clock, installation }: ObservePorts) =>
  async (key: string, signal: AbortSignal): Promise<ObservedProject | undefined> => {
    const entry = caches.projects.cache.entry(key);
    memory.look(key, entry?.uid);
    if (entry === undefined) return undefined;
    if (entry.value === undefined) {
      throw await sayUnreadable(client, PROJECTS, entry, entry.problem, signal);
    }
    const project = memory.written.newest(entry.value);
    const { namespace, uid } = project.metadata;
    const asked = memory.asked.get(uid);
    const { atMs = 0, ...last } = asked ?? {};
    const sessions = caches.sessions.cache.byIndex(BY_PROJECT, key);
    return deepFreeze({
      now: client.serverNowMs(),
      project,
      fact: facts.project(uid),
      controlPlane: facts.controlPlane,
      sessions: sessions.flatMap(({ value }) => (value === undefined ? [] : [counted(value)])),
      serviceAccountSeen: serviceAccounts.isSeen(namespace),
      lastOfNamespace: caches.projects.cache.byIndex(BY_NAMESPACE, namespace).length <= 1,
      asked: asked === undefined ? undefined : { ...(last as typeof asked), agoMs: clock.monotonicMs() - atMs },
      secrets: secretsOf(project, memory, secrets),
      installation,
    });
  };
