// The one ValidatingAdmissionPolicy, `<release>-guard`, with its binding: V1 to V5. Pure: terms in, objects out.
// It must not know how the objects reach a cluster. Source: 10-kubernetes §1.

/** What an installation puts into the policy. Service accounts are names in `namespace`. */
export type GuardInputs = Readonly<{
  releaseName: string;
  namespace: string;
  operatorServiceAccount: string;
  controlPlaneServiceAccount: string;
  /** Prefixes that sandbox images must have; empty allows every image. */
  allowedPrefixes: readonly string[];
  requireDigest: boolean;
}>;

/** The same as CEL text, so that a chart template can fill it in. `allowedPrefixes` is a list literal, `requireDigest` true or false. */
export type GuardTerms = Readonly<{
  policyName: string;
  operatorUser: string;
  controlPlaneUser: string;
  allowedPrefixes: string;
  requireDigest: string;
}>;

/** A Kubernetes object as JSON. */
export type GuardObject = Readonly<{
  apiVersion: string;
  kind: string;
  metadata: Readonly<{ name: string }>;
  spec: Readonly<Record<string, unknown>>;
}>;

/** Prefix of our labels and annotations. */
const PREFIX = 'beeuni.dev/';

type Validation = Readonly<{ expression: string; message?: string; messageExpression?: string; reason: 'Forbidden' }>;

function refuse(unless: string, message: Readonly<{ text: string } | { cel: string }>): Validation {
  return 'text' in message
    ? { expression: unless, message: message.text, reason: 'Forbidden' }
    : { expression: unless, messageExpression: message.cel, reason: 'Forbidden' };
}

/** Labels or annotations of the old or new object; empty when there is no object or no map. */
const metadataMap = (object: string, field: string) =>
  `${object} != null && has(${object}.metadata.${field}) ? ${object}.metadata.${field} : {}`;

/** Keys of ours that differ between two maps. */
const changedKeys = (before: string, after: string) =>
  `${after}.filter(k, k.startsWith('${PREFIX}') && !(k in ${before} && ${before}[k] == ${after}[k])) + ` +
  `${before}.filter(k, k.startsWith('${PREFIX}') && !(k in ${after}))`;

const carriesOurKey = (object: string) =>
  ['labels', 'annotations']
    .map(
      (field) =>
        `(${object} != null && has(${object}.metadata.${field}) && ` +
        `${object}.metadata.${field}.exists(k, k.startsWith('${PREFIX}')))`,
    )
    .join(' || ');

/** `request.subResource` is absent on main requests, so it is read with `has()`. */
const VARIABLES = [
  { name: 'subResource', expression: `has(request.subResource) ? request.subResource : ''` },
  { name: 'ours', expression: `request.resource.group == 'beeuni.dev'` },
  {
    name: 'isProject',
    expression: `variables.ours && request.resource.resource == 'projects' && variables.subResource == ''`,
  },
  {
    name: 'isSession',
    expression: `variables.ours && request.resource.resource == 'sessions' && variables.subResource == ''`,
  },
  { name: 'isWrite', expression: `request.operation in ['CREATE', 'UPDATE']` },
  { name: 'oldLabels', expression: metadataMap('oldObject', 'labels') },
  { name: 'newLabels', expression: metadataMap('object', 'labels') },
  { name: 'oldAnnotations', expression: metadataMap('oldObject', 'annotations') },
  { name: 'newAnnotations', expression: metadataMap('object', 'annotations') },
  {
    name: 'changedKeys',
    expression:
      `!variables.isWrite ? [] : ${changedKeys('variables.oldLabels', 'variables.newLabels')} + ` +
      changedKeys('variables.oldAnnotations', 'variables.newAnnotations'),
  },
  {
    name: 'sourceKind',
    expression:
      `variables.isSession && request.operation == 'CREATE' && has(object.spec.source) && has(object.spec.source.kind) ` +
      `? object.spec.source.kind : 'User'`,
  },
  {
    name: 'blockingSessions',
    expression:
      `variables.isProject && request.operation == 'DELETE' && oldObject.spec.deletionPolicy == 'Block' && has(oldObject.status) && has(oldObject.status.sessions) && ` +
      `has(oldObject.status.sessions.total) ? oldObject.status.sessions.total : 0`,
  },
  {
    name: 'oldImages',
    expression:
      `variables.isProject && oldObject != null && has(oldObject.spec.sandbox) ` +
      `? (has(oldObject.spec.sandbox.image) ? [oldObject.spec.sandbox.image] : []) + ` +
      `(has(oldObject.spec.sandbox.allowedImages) ? oldObject.spec.sandbox.allowedImages : []) : []`,
  },
  {
    name: 'newImage',
    expression:
      `variables.isProject && variables.isWrite && has(object.spec.sandbox) && has(object.spec.sandbox.image) && ` +
      `!(object.spec.sandbox.image in variables.oldImages) ? [object.spec.sandbox.image] : []`,
  },
  {
    name: 'newAllowedImages',
    expression:
      `variables.isProject && variables.isWrite && has(object.spec.sandbox) && has(object.spec.sandbox.allowedImages) ` +
      `? object.spec.sandbox.allowedImages.filter(i, !(i in variables.oldImages)) : []`,
  },
] as const;

function imageValidations(terms: GuardTerms): readonly Validation[] {
  const fields = [
    { field: 'spec.sandbox.image', list: 'variables.newImage' },
    { field: 'spec.sandbox.allowedImages', list: 'variables.newAllowedImages' },
  ];
  const underPrefix = `(size(variables.allowedPrefixes) == 0 || variables.allowedPrefixes.exists(p, i.startsWith(p)))`;
  const hasDigest = `(!${terms.requireDigest} || i.contains('@sha256:'))`;
  return fields.flatMap(({ field, list }) => [
    refuse(`${list}.all(i, ${underPrefix})`, {
      cel: `'${field} ' + ${list}.filter(i, !${underPrefix}).join(', ') + ' is not under an allowed prefix'`,
    }),
    refuse(`${list}.all(i, ${hasDigest})`, {
      cel: `'${field} ' + ${list}.filter(i, !${hasDigest}).join(', ') + ' has no digest'`,
    }),
  ]);
}

function validations(terms: GuardTerms): readonly Validation[] {
  const byOperator = `request.userInfo.username == '${terms.operatorUser}'`;
  const byControlPlane = `request.userInfo.username == '${terms.controlPlaneUser}'`;
  return [
    // V1
    refuse(`!(variables.ours && variables.subResource == 'status') || ${byOperator}`, {
      text: 'status is written by the Beeuni operator only',
    }),
    // V2
    refuse(`size(variables.changedKeys) == 0 || ${byOperator}`, {
      cel: `'labels and annotations with the prefix ${PREFIX} are set by Beeuni only: ' + variables.changedKeys.join(', ')`,
    }),
    // V3
    refuse(`variables.sourceKind == 'User' || ${byControlPlane}`, {
      cel: `'spec.source.kind ' + variables.sourceKind + ' is set by the control plane only; leave spec.source out'`,
    }),
    // V4: convenience for the person at the keyboard; the finalizer is the guarantee.
    refuse(
      `variables.blockingSessions == 0 || ` +
        `(namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp))`,
      {
        cel:
          `'project ' + oldObject.metadata.name + ' has ' + string(variables.blockingSessions) + ' sessions and deletionPolicy ` +
          `Block; delete them first or set spec.deletionPolicy to Cascade'`,
      },
    ),
    // V5: only what is new in this write, so that a stricter installation never blocks the finalizers of older objects.
    ...imageValidations(terms),
  ];
}

/** Policy and binding from CEL terms. */
export function guardObjects(terms: GuardTerms): readonly [policy: GuardObject, binding: GuardObject] {
  const allowedPrefixes = { name: 'allowedPrefixes', expression: terms.allowedPrefixes };
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: terms.policyName },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          matchPolicy: 'Equivalent',
          resourceRules: [
            {
              apiGroups: ['beeuni.dev'],
              apiVersions: ['*'],
              operations: ['CREATE', 'UPDATE', 'DELETE'],
              resources: ['projects', 'projects/status', 'sessions', 'sessions/status'],
            },
            {
              apiGroups: [''],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['pods', 'persistentvolumeclaims'],
            },
            {
              apiGroups: ['networking.k8s.io'],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['networkpolicies'],
            },
          ],
        },
        matchConditions: [
          {
            name: 'ours',
            expression: `request.resource.group == 'beeuni.dev' || ${carriesOurKey('object')} || ${carriesOurKey('oldObject')}`,
          },
        ],
        variables: [...VARIABLES, allowedPrefixes],
        validations: validations(terms),
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: terms.policyName },
      spec: { policyName: terms.policyName, validationActions: ['Deny'] },
    },
  ];
}

/** Policy and binding of an installation. Throws an Error for a name or prefix that could break out of a CEL literal. */
export function guardPolicy(inputs: GuardInputs): readonly [policy: GuardObject, binding: GuardObject] {
  for (const word of [
    inputs.releaseName,
    inputs.namespace,
    inputs.operatorServiceAccount,
    inputs.controlPlaneServiceAccount,
  ]) {
    if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(word))
      throw new Error(`${JSON.stringify(word)} is not a Kubernetes name`);
  }
  const user = (name: string) => `system:serviceaccount:${inputs.namespace}:${name}`;
  return guardObjects({
    policyName: `${inputs.releaseName}-guard`,
    operatorUser: user(inputs.operatorServiceAccount),
    controlPlaneUser: user(inputs.controlPlaneServiceAccount),
    allowedPrefixes: JSON.stringify(inputs.allowedPrefixes),
    requireDigest: String(inputs.requireDigest),
  });
}
