// What the operator watches: Projects, Sessions, and the children that carry our managed-by label, projected and indexed.
// Must not know rules. Source: 10-kubernetes §5, caches.
import type { CacheEntry, CacheView, IndexOf } from '#kube/cache.ts';
import { Informer, type InformerOptions, type InformerPorts } from '#kube/informer.ts';
import { CHILD_SELECTOR, LABELS } from '#kube/names.ts';
import {
  type KubeObject,
  NETWORK_POLICIES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  PROJECTS,
  type ResourceType,
  SESSIONS,
} from '#kube/resource-types.ts';
import { type Project, ProjectKind } from '#schema/resources/project.ts';
import { type Session, SessionKind } from '#schema/resources/session.ts';

/** Index of Sessions by `namespace/project`. */
export const BY_PROJECT = 'project';
/** Index of children by the uid in their session label: for volumes, which may have no owner. */
export const BY_SESSION = 'session';
/** Index of Projects by namespace. */
export const BY_NAMESPACE = 'namespace';

/** A child as it is kept: what a reader made of it, and which Session its names point to (a hint for waking, no proof). */
export type Child<T> = Readonly<{ seen: T; hint: string | undefined; sessionUid: string | undefined }>;

/** One kind as controllers see it, whether one namespace is watched, several, or all. */
export type Watched<V> = Readonly<{ cache: CacheView<V>; subscribe: Informer<V>['subscribe'] }>;

/** An informer of any kind, for who starts and judges it. */
export type AnyInformer = Pick<
  Informer<unknown>,
  'type' | 'start' | 'stop' | 'whenSynced' | 'hasSynced' | 'isStale' | 'lastSignAgeMs' | 'report'
>;

/** All kinds that controllers read. */
export type Caches<Pod, Policy, Volume> = Readonly<{
  projects: Watched<Project>;
  sessions: Watched<Session>;
  pods: Watched<Child<Pod>>;
  networkPolicies: Watched<Child<Policy>>;
  volumes: Watched<Child<Volume>>;
  informers: readonly AnyInformer[];
}>;

/** How children are read; the session controller gives its readers. */
export type ChildReaders<Pod, Policy, Volume> = Readonly<{
  pod: (object: KubeObject) => Pod;
  networkPolicy: (object: KubeObject) => Policy;
  volume: (object: KubeObject) => Volume;
}>;

const bySession: IndexOf<Child<unknown>> = (entry) => {
  const uid = entry.value?.sessionUid;
  return uid === undefined ? [] : [uid];
};

const keep =
  <T>(read: (object: KubeObject) => T) =>
  (object: KubeObject): Child<T> => {
    const { metadata } = object;
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    return {
      seen: read(object),
      hint: (owner?.kind === SESSIONS.kind ? owner.name : undefined) ?? metadata.labels?.[LABELS.session],
      sessionUid: metadata.labels?.[LABELS.sessionUid],
    };
  };

/** Keys of the Sessions that a child may belong to. */
export const sessionKeysOf = (entry: CacheEntry<Child<unknown>>): string[] =>
  entry.value?.hint === undefined ? [] : [`${entry.namespace}/${entry.value.hint}`];

const first = <V, T>(watched: readonly Watched<V>[], find: (cache: CacheView<V>) => T | undefined): T | undefined => {
  for (const { cache } of watched) {
    const found = find(cache);
    if (found !== undefined) return found;
  }
  return undefined;
};

/** Several namespaces as one. */
const together = <V>(watched: readonly Watched<V>[]): Watched<V> => {
  const [only] = watched;
  if (only !== undefined && watched.length === 1) return only;
  const all = (find: (cache: CacheView<V>) => readonly CacheEntry<V>[]) => watched.flatMap(({ cache }) => find(cache));
  return {
    cache: {
      get: (key) => first(watched, (cache) => cache.get(key)),
      entry: (key) => first(watched, (cache) => cache.entry(key)),
      byUid: (uid) => first(watched, (cache) => cache.byUid(uid)),
      byOwner: (uid) => all((cache) => cache.byOwner(uid)),
      byIndex: (index, value) => all((cache) => cache.byIndex(index, value)),
      entries: function* () {
        for (const { cache } of watched) yield* cache.entries();
      },
      size: () => watched.reduce((sum, { cache }) => sum + cache.size(), 0),
    },
    subscribe: (handler, keysOf) => {
      for (const each of watched) each.subscribe(handler, keysOf);
    },
  };
};

/** Caches of the namespaces, or of all when the list is empty. No informer is started. */
export const makeCaches = <Pod, Policy, Volume>(
  ports: InformerPorts,
  namespaces: readonly string[],
  read: ChildReaders<Pod, Policy, Volume>,
): Caches<Pod, Policy, Volume> => {
  const informers: AnyInformer[] = [];
  const watch = <V>(options: InformerOptions<V>): Watched<V> => {
    const where = namespaces.length === 0 ? [undefined] : namespaces;
    const own = where.map(
      (namespace) => new Informer<V>({ ...options, selection: { ...options.selection, namespace } }, ports),
    );
    informers.push(...own);
    return together(own);
  };
  const children = <T>(type: ResourceType, reader: (object: KubeObject) => T) =>
    watch<Child<T>>({
      type,
      selection: { labelSelector: CHILD_SELECTOR },
      project: keep(reader),
      indexes: { [BY_SESSION]: bySession },
    });
  return {
    projects: watch<Project>({
      type: PROJECTS,
      project: (object) => ProjectKind.object.parse(object),
      indexes: { [BY_NAMESPACE]: (entry) => [entry.namespace ?? ''] },
    }),
    sessions: watch<Session>({
      type: SESSIONS,
      project: (object) => SessionKind.object.parse(object),
      indexes: {
        [BY_PROJECT]: ({ value, namespace }) =>
          value === undefined ? [] : [`${namespace}/${value.spec.projectRef.name}`],
      },
    }),
    pods: children(PODS, read.pod),
    networkPolicies: children(NETWORK_POLICIES, read.networkPolicy),
    volumes: children(PERSISTENT_VOLUME_CLAIMS, read.volume),
    informers,
  };
};
