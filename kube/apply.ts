// The four ways to change an object; nothing else sends PATCH. An object is never replaced as a whole. C13 to C15.
// Must not know what the objects mean.
import type { CallOptions, KubeClient } from './client.ts';
import { apiVersionOf, type KubeObject, type ObjectRef, pathOf, type ResourceType } from './resource-types.ts';

/** Who owns the fields that are sent. Source: K25. */
export const FIELD_MANAGERS = {
  operator: 'beeuni-operator',
  operatorStatus: 'beeuni-operator-status',
  api: 'beeuni-api',
} as const;

/** Options of an apply. `force` takes fields from other managers and is for fields that are ours alone. */
export type ApplyOptions = CallOptions & Readonly<{ manager: string; force: boolean; dryRun?: boolean | undefined }>;

/** Options of a patch. */
export type PatchOptions = CallOptions &
  Readonly<{
    manager: string;
    subresource?: 'status' | undefined;
    dryRun?: boolean | undefined;
    /** Whether a field that the schema does not know is refused instead of dropped. */
    strict?: boolean | undefined;
  }>;

/** One step of a JSON Patch (RFC 6902). */
export type JsonPatchStep =
  | Readonly<{ op: 'add' | 'replace' | 'test'; path: string; value: unknown }>
  | Readonly<{ op: 'remove'; path: string }>;

const sendApply = async <T extends KubeObject>(
  client: KubeClient,
  type: ResourceType,
  object: KubeObject,
  options: ApplyOptions,
  subresource: 'status' | undefined,
): Promise<T> => {
  const { name, namespace } = object.metadata;
  return (await client.request({
    verb: 'apply',
    type,
    path: pathOf(type, { namespace, name, subresource }),
    query: {
      fieldManager: options.manager,
      force: options.force,
      dryRun: options.dryRun === true ? 'All' : undefined,
    },
    body: { ...object, apiVersion: apiVersionOf(type), kind: type.kind },
    contentType: 'application/apply-patch+yaml',
    idempotent: true,
    mutates: options.dryRun !== true,
    timeoutMs: options.timeoutMs,
    signal: options.signal,
  })) as T;
};

/**
 * Server-side apply of the manager's whole set of fields: what it sent before and omits now is removed.
 * Creates a missing object unless the body carries `metadata.uid`: then 409 (missing) or 422 (another uid). K23, K25.
 */
export const apply = <T extends KubeObject = KubeObject>(
  client: KubeClient,
  type: ResourceType,
  object: KubeObject,
  options: ApplyOptions,
): Promise<T> => sendApply<T>(client, type, object, options, undefined);

/**
 * Server-side apply of a status. The server ignores `metadata.uid` here, so a body that must not reach a namesake
 * carries `metadata.resourceVersion`: then ConflictError. A missing object is NotFoundError. Source: K24.
 */
export const applyStatus = <T extends KubeObject = KubeObject>(
  client: KubeClient,
  type: ResourceType,
  object: KubeObject,
  options: ApplyOptions,
): Promise<T> => sendApply<T>(client, type, object, options, 'status');

const sendPatch = async <T extends KubeObject>(
  client: KubeClient,
  type: ResourceType,
  ref: ObjectRef,
  body: unknown,
  contentType: string,
  options: PatchOptions,
): Promise<T> =>
  (await client.request({
    verb: 'patch',
    type,
    path: pathOf(type, { ...ref, subresource: options.subresource }),
    query: {
      fieldManager: options.manager,
      dryRun: options.dryRun === true ? 'All' : undefined,
      fieldValidation: options.strict === true ? 'Strict' : undefined,
    },
    body,
    contentType,
    idempotent: false,
    mutates: options.dryRun !== true,
    timeoutMs: options.timeoutMs,
    signal: options.signal,
  })) as T;

/** JSON merge patch: the given fields, null removes one. `metadata.resourceVersion` in it is a precondition (409). */
export const mergePatch = <T extends KubeObject = KubeObject>(
  client: KubeClient,
  type: ResourceType,
  ref: ObjectRef,
  patch: Readonly<Record<string, unknown>>,
  options: PatchOptions,
): Promise<T> => sendPatch<T>(client, type, ref, patch, 'application/merge-patch+json', options);

/** JSON Patch: steps in order, all or none. A `test` that fails is InvalidError. */
export const jsonPatch = <T extends KubeObject = KubeObject>(
  client: KubeClient,
  type: ResourceType,
  ref: ObjectRef,
  steps: readonly JsonPatchStep[],
  options: PatchOptions,
): Promise<T> => sendPatch<T>(client, type, ref, steps, 'application/json-patch+json', options);
