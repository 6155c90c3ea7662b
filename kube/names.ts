// Every label, annotation, finalizer and child name of ours. Pure; nothing else spells the prefix.
// Source: 10-kubernetes §1, §5.

/** Labels of children. */
export const LABELS = {
  name: 'app.kubernetes.io/name',
  instance: 'app.kubernetes.io/instance',
  version: 'app.kubernetes.io/version',
  component: 'app.kubernetes.io/component',
  partOf: 'app.kubernetes.io/part-of',
  managedBy: 'app.kubernetes.io/managed-by',
  project: 'beeuni.dev/project',
  session: 'beeuni.dev/session',
  sessionUid: 'beeuni.dev/session-uid',
  /** Source kind in lower case. */
  source: 'beeuni.dev/source',
  /** On pods: the harness that this pod was started with. */
  harness: 'beeuni.dev/harness',
  /** On volume claims: `true` once the Session is gone and the volume is kept. */
  retained: 'beeuni.dev/retained',
} as const;

/** Annotations of children. */
export const ANNOTATIONS = {
  attempt: 'beeuni.dev/attempt',
  harnessReason: 'beeuni.dev/harness-reason',
  gateway: 'beeuni.dev/gateway',
  restartToken: 'beeuni.dev/restart-token',
  podHash: 'beeuni.dev/pod-hash',
  /** On network policies: hash of the rendered policy. */
  specHash: 'beeuni.dev/spec-hash',
} as const;

/** Finalizers. */
export const FINALIZERS = {
  session: 'beeuni.dev/session-cleanup',
  project: 'beeuni.dev/project-protection',
} as const;

/** Value of `managed-by` on children; caches of children select it. */
export const MANAGED_BY = 'beeuni-operator';
/** Service account of all sandboxes of a namespace. */
export const SANDBOX_SERVICE_ACCOUNT = 'beeuni-sandbox';
/** Selector of the children that the operator caches. */
export const CHILD_SELECTOR = `${LABELS.managedBy}=${MANAGED_BY}`;

const MAX_LABEL = 63;
const HASH_LENGTH = 8;
const NOT_LABEL = /[^A-Za-z0-9._-]+/g;

/** FNV-1a of the UTF-16 units, 32 bits, eight hex digits. It tells cut values apart and protects nothing. */
const shortHash = (text: string): string => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(16).padStart(HASH_LENGTH, '0');
};

/** A valid label value: the text itself, or as much of it as fits with a hash of the whole. At most 63 characters. */
export const labelValue = (text: string): string => {
  const clean = text.replace(NOT_LABEL, '-').replace(/^[._-]+|[._-]+$/g, '');
  if (clean === text && clean.length <= MAX_LABEL) return clean;
  const kept = clean.slice(0, MAX_LABEL - HASH_LENGTH - 1).replace(/[._-]+$/, '');
  return kept === '' ? shortHash(text) : `${kept}-${shortHash(text)}`;
};

/** The first five characters of a uid. */
export const uid5 = (uid: string): string => uid.slice(0, 5);

/** Name of a Session's network policy and volume claim; never cut, as names are at most 46 characters (K3). */
export const childName = (session: string, uid: string): string => `${session}-${uid5(uid)}`;

/** Name of the pod of one attempt; attempts count from 1. */
export const podName = (session: string, uid: string, attempt: number): string =>
  `${childName(session, uid)}-${attempt}`;

/** Default branch of a Session: unique per uid, so a re-created Session never continues another's. */
export const defaultBranchName = (session: string, uid: string): string => `beeuni/${childName(session, uid)}`;

/** Labels that every child of a Session carries. `version` is the product's. */
export const childLabels = (
  of: Readonly<{ project: string; session: string; sessionUid: string; source: string; version: string }>,
): Record<string, string> => ({
  [LABELS.name]: 'beeuni-sandbox',
  [LABELS.instance]: labelValue(of.session),
  [LABELS.version]: labelValue(of.version),
  [LABELS.component]: 'sandbox',
  [LABELS.partOf]: 'beeuni',
  [LABELS.managedBy]: MANAGED_BY,
  [LABELS.project]: labelValue(of.project),
  [LABELS.session]: labelValue(of.session),
  [LABELS.sessionUid]: of.sessionUid,
  [LABELS.source]: of.source.toLowerCase(),
});
