// The verbs of the API server. Must not know what the objects mean; PATCH bodies are made in apply.ts only.
import { ConflictError } from '#base/errors.ts';
import { isConflict, isExpired, isNotFound } from './errors.ts';
import { apiVersionOf, type KubeObject, keyOf, type ObjectRef, pathOf, type ResourceType } from './resource-types.ts';
import {
  type ClientPorts,
  JSON_TYPE,
  METADATA_TYPE,
  makeTransport,
  type Selection,
  type Send,
  type Transport,
} from './transport.ts';

export type { ClientPorts, Selection } from './transport.ts';

/** Limits of one call; `timeoutMs` is for all attempts together, 30_000 when absent. */
export type CallOptions = Readonly<{ signal?: AbortSignal | undefined; timeoutMs?: number | undefined }>;

/** One page of a list. `more` is false on the last page. */
export type ListPage<T extends KubeObject> = Readonly<{ items: readonly T[]; resourceVersion: string; more: boolean }>;

/** What a delete may hit. The UID is not optional; a volume claim also needs its resourceVersion. Source: K23. */
export type DeleteOptions = CallOptions &
  Readonly<{
    uid: string;
    resourceVersion?: string | undefined;
    graceSeconds?: number | undefined;
    propagation?: 'Background' | 'Foreground' | 'Orphan' | undefined;
  }>;

/** What became of a delete: asked for, nothing there, or the name belongs to another object now. */
export type DeleteOutcome = 'accepted' | 'absent' | 'replaced';

/** The API server. Errors of every function: BeeuniError classes with a KubeError as cause. */
export type KubeClient = Readonly<{
  /** The parsed JSON answer of one request. */
  request: Send;
  /** The object, or undefined when there is none. */
  get: <T extends KubeObject = KubeObject>(
    type: ResourceType,
    ref: ObjectRef,
    options?: CallOptions & Readonly<{ metadataOnly?: boolean | undefined }>,
  ) => Promise<T | undefined>;
  /** Pages of at most 500 objects. A page token that expired ends it with a 410. */
  listPages: <T extends KubeObject = KubeObject>(
    type: ResourceType,
    selection?: Selection,
    options?: CallOptions & Readonly<{ attempts?: number | undefined; pageSize?: number | undefined }>,
  ) => AsyncGenerator<ListPage<T>, void>;
  /** All objects of a selection; an expired page token starts the list again. */
  list: <T extends KubeObject = KubeObject>(
    type: ResourceType,
    selection?: Selection,
    options?: CallOptions & Readonly<{ pageSize?: number | undefined }>,
  ) => Promise<Readonly<{ items: readonly T[]; resourceVersion: string }>>;
  /** The created object. Errors: ConflictError `already_exists`. Never repeated: read, compare the owner, go on. */
  create: <T extends KubeObject = KubeObject>(
    type: ResourceType,
    object: KubeObject,
    options: CallOptions & Readonly<{ manager: string; dryRun?: boolean | undefined }>,
  ) => Promise<T>;
  /** What became of it. Errors: ConflictError when the resourceVersion was given and is another one. */
  delete: (type: ResourceType, ref: ObjectRef, options: DeleteOptions) => Promise<DeleteOutcome>;
  watch: Transport['watch'];
  serverNowMs: Transport['serverNowMs'];
  namespace: Transport['namespace'];
  /** A client whose mutating requests fail with UnavailableError while `mayWrite` is false. Source: K29. */
  guarded: (mayWrite: () => boolean) => KubeClient;
  close: Transport['close'];
}>;

/** Objects in a page. Source: C8. */
export const PAGE_SIZE = 500;
const MAX_LIST_RESTARTS = 3;
const METADATA_LIST_TYPE = `${JSON_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`;

const guard =
  (send: Send, mayWrite: () => boolean): Send =>
  (request) =>
    send(request.mutates ? { ...request, mayStart: mayWrite } : request);

const listPages = (send: Send): KubeClient['listPages'] =>
  async function* <T extends KubeObject>(
    type: ResourceType,
    selection: Selection = {},
    options: CallOptions & Readonly<{ attempts?: number | undefined; pageSize?: number | undefined }> = {},
  ) {
    let continueToken: string | undefined;
    do {
      const answer = (await send({
        verb: 'list',
        type,
        path: pathOf(type, { namespace: selection.namespace }),
        query: {
          limit: options.pageSize ?? PAGE_SIZE,
          continue: continueToken,
          labelSelector: selection.labelSelector,
          fieldSelector: selection.fieldSelector,
        },
        accept: selection.metadataOnly === true ? METADATA_LIST_TYPE : JSON_TYPE,
        idempotent: true,
        mutates: false,
        attempts: options.attempts,
        timeoutMs: options.timeoutMs,
        signal: options.signal,
      })) as { items?: T[] | null; metadata: { resourceVersion: string; continue?: string } };
      continueToken = answer.metadata.continue === '' ? undefined : answer.metadata.continue;
      yield {
        items: answer.items ?? [],
        resourceVersion: answer.metadata.resourceVersion,
        more: continueToken !== undefined,
      };
    } while (continueToken !== undefined);
  };

const withVerbs = (core: Transport, send: Send): KubeClient => {
  const pages = listPages(send);
  return {
    request: send,
    get: async <T extends KubeObject>(
      type: ResourceType,
      ref: ObjectRef,
      options: CallOptions & Readonly<{ metadataOnly?: boolean | undefined }> = {},
    ) => {
      try {
        return (await send({
          verb: 'get',
          type,
          path: pathOf(type, ref),
          accept: options.metadataOnly === true ? METADATA_TYPE : JSON_TYPE,
          idempotent: true,
          mutates: false,
          timeoutMs: options.timeoutMs,
          signal: options.signal,
        })) as T;
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    listPages: pages,
    list: async <T extends KubeObject>(
      type: ResourceType,
      selection: Selection = {},
      options: CallOptions & Readonly<{ pageSize?: number | undefined }> = {},
    ) => {
      for (let restarts = 0; ; restarts += 1) {
        const items: T[] = [];
        let resourceVersion = '';
        try {
          for await (const page of pages<T>(type, selection, options)) {
            items.push(...page.items);
            ({ resourceVersion } = page);
          }
          return { items, resourceVersion };
        } catch (error) {
          if (!isExpired(error) || restarts >= MAX_LIST_RESTARTS) throw error;
        }
      }
    },
    create: async <T extends KubeObject>(
      type: ResourceType,
      object: KubeObject,
      options: CallOptions & Readonly<{ manager: string; dryRun?: boolean | undefined }>,
    ) =>
      (await send({
        verb: 'create',
        type,
        path: pathOf(type, { namespace: object.metadata.namespace }),
        query: { fieldManager: options.manager, dryRun: options.dryRun === true ? 'All' : undefined },
        body: { ...object, apiVersion: apiVersionOf(type), kind: type.kind },
        idempotent: false,
        mutates: options.dryRun !== true,
        timeoutMs: options.timeoutMs,
        signal: options.signal,
      })) as T,
    delete: async (type, ref, options) => {
      try {
        await send({
          verb: 'delete',
          type,
          path: pathOf(type, ref),
          body: {
            apiVersion: 'v1',
            kind: 'DeleteOptions',
            preconditions: { uid: options.uid, resourceVersion: options.resourceVersion },
            gracePeriodSeconds: options.graceSeconds,
            propagationPolicy: options.propagation,
          },
          idempotent: true,
          mutates: true,
          timeoutMs: options.timeoutMs,
          signal: options.signal,
        });
        return 'accepted';
      } catch (error) {
        if (isNotFound(error)) return 'absent';
        if (!isConflict(error)) throw error;
        if (options.resourceVersion === undefined) return 'replaced';
        throw new ConflictError('conflict', `${keyOf(ref)} is not the ${type.kind} that was read`, { cause: error });
      }
    },
    watch: core.watch,
    serverNowMs: core.serverNowMs,
    namespace: core.namespace,
    guarded: (mayWrite) => withVerbs(core, guard(send, mayWrite)),
    close: core.close,
  };
};

/** A client over an open connection; it has no effect until it is used. */
export const makeKubeClient = (ports: ClientPorts): KubeClient => {
  const core = makeTransport(ports);
  return withVerbs(core, core.send);
};
