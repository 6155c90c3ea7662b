// The kinds that we use, as values, and where the API server keeps them. Pure: must not know any client.

/** One kind of object. `group` is empty for the core group. */
export type ResourceType = Readonly<{
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
}>;

/** Metadata of an object as JSON has it; times are RFC 3339 strings. */
export type ObjectMeta = Readonly<{
  name: string;
  namespace?: string | undefined;
  generateName?: string | undefined;
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  generation?: number | undefined;
  creationTimestamp?: string | undefined;
  deletionTimestamp?: string | undefined;
  deletionGracePeriodSeconds?: number | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  annotations?: Readonly<Record<string, string>> | undefined;
  finalizers?: readonly string[] | undefined;
  ownerReferences?: readonly OwnerReference[] | undefined;
}>;

/** A reference from a child to its owner. */
export type OwnerReference = Readonly<{
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean | undefined;
  blockOwnerDeletion?: boolean | undefined;
}>;

/** An object as the API server sends it: raw JSON. */
export type KubeObject = Readonly<{
  apiVersion?: string | undefined;
  kind?: string | undefined;
  metadata: ObjectMeta;
  [field: string]: unknown;
}>;

/** Name of one object; `namespace` is absent for kinds without one. */
export type ObjectRef = Readonly<{ namespace?: string | undefined; name: string }>;

const type = (group: string, version: string, plural: string, kind: string, namespaced = true): ResourceType => ({
  group,
  version,
  plural,
  kind,
  namespaced,
});

/** Project of Beeuni. */
export const PROJECTS = type('beeuni.dev', 'v1alpha1', 'projects', 'Project');
/** Session of Beeuni. */
export const SESSIONS = type('beeuni.dev', 'v1alpha1', 'sessions', 'Session');
export const PODS = type('', 'v1', 'pods', 'Pod');
export const PERSISTENT_VOLUME_CLAIMS = type('', 'v1', 'persistentvolumeclaims', 'PersistentVolumeClaim');
export const SERVICE_ACCOUNTS = type('', 'v1', 'serviceaccounts', 'ServiceAccount');
export const SECRETS = type('', 'v1', 'secrets', 'Secret');
export const NAMESPACES = type('', 'v1', 'namespaces', 'Namespace', false);
export const NETWORK_POLICIES = type('networking.k8s.io', 'v1', 'networkpolicies', 'NetworkPolicy');
export const LEASES = type('coordination.k8s.io', 'v1', 'leases', 'Lease');
export const EVENTS = type('events.k8s.io', 'v1', 'events', 'Event');
export const TOKEN_REVIEWS = type('authentication.k8s.io', 'v1', 'tokenreviews', 'TokenReview', false);
export const SUBJECT_ACCESS_REVIEWS = type(
  'authorization.k8s.io',
  'v1',
  'subjectaccessreviews',
  'SubjectAccessReview',
  false,
);
export const CUSTOM_RESOURCE_DEFINITIONS = type(
  'apiextensions.k8s.io',
  'v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
  false,
);

/** `v1` or `group/version`. */
export const apiVersionOf = (of: ResourceType): string => (of.group === '' ? of.version : `${of.group}/${of.version}`);

/** Path of a collection, or of one object when `name` is given, or of its subresource. Absolute, without query. */
export const pathOf = (
  of: ResourceType,
  at: Readonly<{ namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined }>,
): string => {
  const segments = [of.group === '' ? 'api' : `apis/${of.group}`, of.version];
  if (of.namespaced && at.namespace !== undefined) segments.push('namespaces', encodeURIComponent(at.namespace));
  segments.push(of.plural);
  if (at.name !== undefined) segments.push(encodeURIComponent(at.name));
  if (at.subresource !== undefined) segments.push(at.subresource);
  return `/${segments.join('/')}`;
};

/** Key of an object in caches and queues: `namespace/name`, or `name` without a namespace. */
export const keyOf = (ref: ObjectRef): string =>
  ref.namespace === undefined ? ref.name : `${ref.namespace}/${ref.name}`;
