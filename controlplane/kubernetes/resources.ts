// Projects and Sessions as the control plane sees them: two followed caches with indexes, and the few writes of the REST
// API. There is no copy of them anywhere else. Must not know HTTP or SQL. Source: D2, D3, K25.
import type { Clock } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { Instruments } from '#base/metrics.ts';
import { apply, FIELD_MANAGERS, mergePatch } from '#kube/apply.ts';
import type { CacheEntry } from '#kube/cache.ts';
import type { KubeClient } from '#kube/client.ts';
import { Informer, type InformerOptions } from '#kube/informer.ts';
import { type KubeObject, keyOf, PROJECTS, pathOf, type ResourceType, SESSIONS } from '#kube/resource-types.ts';
import type { KUBE_METRICS } from '#schema/metrics.ts';
import { type Project, ProjectKind } from '#schema/resources/project.ts';
import { type Session, SessionKind } from '#schema/resources/session.ts';

/** What the caches need. */
export type ResourcesPorts = Readonly<{
  client: KubeClient;
  clock: Clock;
  random: () => number;
  log: Logger;
  metrics: Instruments<typeof KUBE_METRICS>;
  /** Namespaces to look at; empty means all. */
  namespaces: readonly string[];
}>;

/** Stops a subscription. */
export type Unsubscribe = () => void;

/** Reads of one kind. Everything is from memory but `fetch`. */
export type ResourceReader<T> = Readonly<{
  find: (namespace: string, name: string) => T | undefined;
  findByUid: (uid: string) => T | undefined;
  /** As `find`, and asks the API server when the cache has none: an object of a moment ago is found. */
  fetch: (namespace: string, name: string) => Promise<T | undefined>;
  /** All objects of a namespace, or of all, ordered by namespace and name. */
  list: (namespace?: string) => readonly T[];
  /** Calls back with the uid of an object after it was added, changed or deleted. */
  onChange: (listener: (uid: string) => void) => Unsubscribe;
}>;

/** Both kinds, and what the REST API writes. */
export type Resources = Readonly<{
  projects: ResourceReader<Project>;
  sessions: ResourceReader<Session> &
    Readonly<{
      findByPodUid: (podUid: string) => Session | undefined;
      ofProject: (namespace: string, project: string) => readonly Session[];
    }>;
  /** Errors: ConflictError `already_exists`, InvalidError `resource_rejected` with the API server's text. */
  createSession: (namespace: string, name: string, spec: Readonly<Record<string, unknown>>) => Promise<Session>;
  /** A merge patch of exactly these fields of the spec. Errors: NotFoundError, InvalidError `resource_rejected`. */
  patchSession: (session: Session, spec: Readonly<Record<string, unknown>>) => Promise<Session>;
  patchProject: (project: Project, spec: Readonly<Record<string, unknown>>) => Promise<Project>;
  /** Asks for the deletion of exactly this object; false when it is gone or another one. */
  deleteSession: (session: Session) => Promise<boolean>;
  /** As `createSession`. */
  createProject: (namespace: string, name: string, spec: Readonly<Record<string, unknown>>) => Promise<Project>;
  /** As `deleteSession`. Errors: InvalidError `resource_rejected` and ForbiddenError with the text of the policy. */
  deleteProject: (project: Project) => Promise<boolean>;
  /** The spec as the API server has it now; undefined when there is no such object. */
  readSpec: (kind: 'projects' | 'sessions', namespace: string, name: string) => Promise<unknown>;
  start: () => void;
  /** Resolves true when both caches are complete, false when they were stopped before. */
  whenSynced: () => Promise<boolean>;
  /** Kinds whose cache is not complete or has had no sign of life for too long. */
  staleKinds: () => readonly string[];
  /** Sets the gauges of the caches. */
  report: () => void;
  stop: () => Promise<void>;
}>;

const POD_UID = 'pod-uid';
const PROJECT = 'project';

const readProject = (object: KubeObject): Project => ProjectKind.object.parse(object);
const readSession = (object: KubeObject): Session => SessionKind.object.parse(object);

const byKey = <T extends Project | Session>(a: T, b: T): number => {
  const left = `${a.metadata.namespace}/${a.metadata.name}`;
  const right = `${b.metadata.namespace}/${b.metadata.name}`;
  return left < right ? -1 : left > right ? 1 : 0;
};

type Followed<T> = Readonly<{ informers: readonly Informer<T>[]; reader: ResourceReader<T> }>;

const follow = <T extends Project | Session>(
  ports: ResourcesPorts,
  type: ResourceType,
  read: (object: KubeObject) => T,
  indexes: NonNullable<InformerOptions<T>['indexes']>,
): Followed<T> => {
  const places = ports.namespaces.length === 0 ? [undefined] : ports.namespaces;
  const informers = places.map(
    (namespace) => new Informer<T>({ type, project: read, indexes, selection: { namespace } }, ports),
  );
  const listeners = new Set<(uid: string) => void>();
  for (const informer of informers) {
    informer.subscribe(
      (uid) => {
        for (const listener of listeners) listener(uid);
      },
      (entry) => [entry.uid],
    );
  }
  const first = (pick: (informer: Informer<T>) => T | undefined): T | undefined => {
    for (const informer of informers) {
      const found = pick(informer);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const find = (namespace: string, name: string): T | undefined =>
    first((informer) => informer.cache.get(keyOf({ namespace, name })));
  const reader: ResourceReader<T> = {
    find,
    findByUid: (uid) => first((informer) => informer.cache.byUid(uid)?.value),
    fetch: async (namespace, name) => {
      const known = find(namespace, name);
      if (known !== undefined) return known;
      const object = await ports.client.get(type, { namespace, name });
      return object === undefined ? undefined : read(object);
    },
    list: (namespace) =>
      informers
        .flatMap((informer) => [...informer.cache.entries()])
        .flatMap((entry) =>
          entry.value !== undefined && (namespace === undefined || entry.namespace === namespace) ? [entry.value] : [],
        )
        .sort(byKey),
    onChange: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
  return { informers, reader };
};

const valuesOf = <T>(entries: readonly CacheEntry<T>[]): readonly T[] =>
  entries.flatMap((entry) => (entry.value === undefined ? [] : [entry.value]));

/** The caches and writes; nothing is asked of the API server before `start`. */
export const makeResources = (ports: ResourcesPorts): Resources => {
  const { client } = ports;
  const projects = follow(ports, PROJECTS, readProject, {});
  const sessions = follow(ports, SESSIONS, readSession, {
    [POD_UID]: (entry) => {
      const uid = entry.value?.status?.pod?.uid;
      return uid === undefined ? [] : [uid];
    },
    [PROJECT]: (entry) => {
      const name = entry.value?.spec.projectRef.name;
      return name === undefined ? [] : [`${entry.namespace}/${name}`];
    },
  });
  const informers = [...projects.informers, ...sessions.informers];
  const manager = FIELD_MANAGERS.api;
  const inSessions = (index: string, value: string): readonly Session[] =>
    sessions.informers.flatMap((informer) => valuesOf(informer.cache.byIndex(index, value)));

  const create = async (
    type: ResourceType,
    { apiVersion, kind }: Readonly<{ apiVersion: string; kind: string }>,
    namespace: string,
    name: string,
    spec: Readonly<Record<string, unknown>>,
  ): Promise<KubeObject> => {
    const object = { apiVersion, kind, metadata: { namespace, name }, spec };
    // An apply (K25) neither refuses an existing object nor words an unknown field; a create without effect does both.
    // Two creates of one name at the same moment may both pass: the second then changes what the first made.
    await client.request({
      verb: 'create',
      type,
      path: pathOf(type, { namespace }),
      query: { fieldManager: manager, dryRun: 'All', fieldValidation: 'Strict' },
      body: object,
      idempotent: true,
      mutates: false,
    });
    return apply(client, type, object, { manager, force: false });
  };

  return {
    projects: projects.reader,
    sessions: {
      ...sessions.reader,
      findByPodUid: (podUid) => inSessions(POD_UID, podUid)[0],
      ofProject: (namespace, project) => inSessions(PROJECT, `${namespace}/${project}`),
    },
    createSession: async (namespace, name, spec) =>
      readSession(await create(SESSIONS, SessionKind, namespace, name, spec)),
    createProject: async (namespace, name, spec) =>
      readProject(await create(PROJECTS, ProjectKind, namespace, name, spec)),
    patchSession: async (session, spec) => {
      const { namespace, name } = session.metadata;
      return readSession(await mergePatch(client, SESSIONS, { namespace, name }, { spec }, { manager, strict: true }));
    },
    patchProject: async (project, spec) => {
      const { namespace, name } = project.metadata;
      return readProject(await mergePatch(client, PROJECTS, { namespace, name }, { spec }, { manager, strict: true }));
    },
    deleteSession: async (session) => {
      const { namespace, name, uid } = session.metadata;
      return (await client.delete(SESSIONS, { namespace, name }, { uid })) === 'accepted';
    },
    deleteProject: async (project) => {
      const { namespace, name, uid } = project.metadata;
      return (await client.delete(PROJECTS, { namespace, name }, { uid })) === 'accepted';
    },
    readSpec: async (kind, namespace, name) =>
      (await client.get(kind === 'projects' ? PROJECTS : SESSIONS, { namespace, name }))?.['spec'],
    start: () => {
      for (const informer of informers) informer.start();
    },
    whenSynced: async () => {
      const synced = await Promise.all(informers.map((informer) => informer.whenSynced()));
      return synced.every(Boolean);
    },
    staleKinds: () => [...new Set(informers.filter((informer) => informer.isStale()).map(({ type }) => type.kind))],
    report: () => {
      for (const informer of informers) informer.report();
    },
    stop: async () => {
      await Promise.all(informers.map((informer) => informer.stop()));
    },
  };
};
