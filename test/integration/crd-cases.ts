// One accepted and one refused object for every CEL rule of both kinds, with the field that the refusal names.
// A case gives values by path in `spec`; the rest is the smallest valid object.

/** Values by path in `spec`, for example `{'egress.mode': 'Public'}`. */
export type SpecValues = Readonly<Record<string, unknown>>;

/** `at` is the node that carries the rule; `field` is what the server names, when it is not that node. */
export type RuleCase = Readonly<{
  kind: 'Project' | 'Session';
  at: string;
  message: string;
  field?: string;
  accepted: SpecValues;
  refused: SpecValues;
}>;

/** Like RuleCase, for rules that compare with the stored object: the second value is written over the first. */
export type TransitionCase = Readonly<{
  kind: 'Project' | 'Session';
  at: string;
  message: string;
  field: string;
  from: SpecValues;
  accepted: SpecValues;
  refused: readonly SpecValues[];
}>;

/** The smallest valid spec of each kind. */
export const MINIMAL_SPECS = {
  Project: { repository: { url: 'https://git.example.com/team/shop.git' } },
  Session: { projectRef: { name: 'shop' } },
} as const;

const rule = (
  kind: 'Project' | 'Session',
  at: string,
  message: string,
  accepted: SpecValues,
  refused: SpecValues,
  field?: string,
): RuleCase => ({ kind, at, message, accepted, refused, ...(field === undefined ? {} : { field }) });

const secret = (values: object) => [
  { env: 'TOKEN', secretRef: { name: 'shop', key: 'token' }, agents: ['dev'], ...values },
];
const providerKey = (values: object) => [
  { provider: 'acme', env: 'ACME_KEY', secretRef: { name: 'shop', key: 'acme' }, ...values },
];
const ports = [{ port: 443 }];

const branches = [
  ['Project', 'spec.repository.defaultBranch', 'repository.defaultBranch'],
  ['Session', 'spec.branch.name', 'branch.name'],
  ['Session', 'spec.branch.base', 'branch.base'],
] as const;

const resourceParents = [
  ['Project', 'sandbox.resources.requests'],
  ['Project', 'sandbox.resources.limits'],
  ['Project', 'sandbox.maxResources'],
  ['Session', 'sandbox.resources.requests'],
  ['Session', 'sandbox.resources.limits'],
] as const;
const resourceBounds = [
  ['cpu', '32', '32.001'],
  ['memory', '128Gi', '129Gi'],
  ['ephemeral-storage', '500Gi', '501Gi'],
] as const;

const resourcesOf = [
  ['Project', 'sandbox.resources'],
  ['Session', 'sandbox.resources'],
] as const;
const workspacesOf = [
  ['Project', 'sandbox.workspace'],
  ['Session', 'workspace'],
] as const;
const lifecyclesOf = [
  ['Project', 'defaults.lifecycle'],
  ['Session', 'lifecycle'],
] as const;

const URL_FORM = 'must be an https, http or ssh URL, or user@host:path';
const CREDENTIALS = 'must not contain credentials; use spec.repository.credentialsSecretRef';
const RESERVED = 'names that start with BEEUNI_ are reserved';
const CIDR = 'must be a network in canonical CIDR form, for example 203.0.113.0/24';

/** Cases for rules that look at one object. */
export const RULE_CASES: readonly RuleCase[] = [
  rule(
    'Project',
    'spec.repository.url',
    URL_FORM,
    { 'repository.url': 'git@git.example.com:team/shop.git' },
    { 'repository.url': 'ftp://git.example.com/shop' },
  ),
  rule(
    'Project',
    'spec.repository.url',
    CREDENTIALS,
    { 'repository.url': 'ssh://git@git.example.com:22/shop.git' },
    { 'repository.url': 'https://bot:pw@git.example.com/shop.git' },
  ),
  rule(
    'Project',
    'spec.manifestPath',
    'must be a relative path inside the repository',
    { manifestPath: 'teams/.config/beeuni.yaml' },
    { manifestPath: 'teams/../beeuni.yaml' },
  ),
  rule(
    'Project',
    'spec.limits',
    'dailyBudgetMicroUSD must not exceed monthlyBudgetMicroUSD',
    { limits: { dailyBudgetMicroUSD: 5, monthlyBudgetMicroUSD: 5 } },
    { limits: { dailyBudgetMicroUSD: 6, monthlyBudgetMicroUSD: 5 } },
    'spec.limits.dailyBudgetMicroUSD',
  ),
  rule(
    'Project',
    'spec.secrets[].env',
    RESERVED,
    { secrets: secret({}) },
    { secrets: secret({ env: 'BEEUNI_TOKEN' }) },
  ),
  rule(
    'Project',
    'spec.providerKeys[].env',
    RESERVED,
    { providerKeys: providerKey({}) },
    { providerKeys: providerKey({ env: 'BEEUNI_KEY' }) },
  ),
  rule(
    'Project',
    'spec.secrets[].agents',
    "'*' cannot be combined with names",
    { secrets: secret({ agents: ['*'] }) },
    { secrets: secret({ agents: ['*', 'dev'] }) },
  ),
  rule(
    'Project',
    'spec',
    'an env name is used by both secrets and providerKeys',
    { secrets: secret({}), providerKeys: providerKey({}) },
    { secrets: secret({}), providerKeys: providerKey({ env: 'TOKEN' }) },
    'spec.providerKeys',
  ),
  rule(
    'Project',
    'spec.egress',
    'mode AllowList needs at least one entry in allow',
    { egress: { mode: 'AllowList', allow: [{ cidr: '203.0.113.0/24', ports }] } },
    { egress: { mode: 'AllowList' } },
    'spec.egress.allow',
  ),
  rule(
    'Project',
    'spec.egress',
    'mode Restricted takes no allow list',
    { egress: { mode: 'Public', allow: [{ cidr: '2001:db8::/32', ports }] } },
    { egress: { allow: [{ cidr: '203.0.113.0/24', ports }] } },
    'spec.egress.allow',
  ),
  rule(
    'Project',
    'spec.egress.allow[].cidr',
    CIDR,
    { egress: { mode: 'AllowList', allow: [{ cidr: '203.0.113.7/32', ports }] } },
    { egress: { mode: 'AllowList', allow: [{ cidr: '203.0.113.7/24', ports }] } },
  ),
  rule(
    'Session',
    'spec.prompt',
    'must be at most 8192 bytes; send longer prompts through the REST API',
    { prompt: 'é'.repeat(4096) },
    { prompt: 'é'.repeat(4097) },
  ),
  rule(
    'Session',
    'spec',
    'spec.prompt is required when spec.mode is Task',
    { mode: 'Task', prompt: 'go' },
    { mode: 'Task' },
    'spec.prompt',
  ),
  rule(
    'Session',
    'spec.source',
    'parentRef is required for kind Child and refused for others',
    { source: { kind: 'Child', parentRef: { name: 'a', uid: '00000000-0000-4000-8000-000000000000' } } },
    { source: { kind: 'Child' } },
    'spec.source.parentRef',
  ),
  rule(
    'Session',
    'spec.source',
    'name is required for kinds Trigger and Channel and refused for others',
    { source: { kind: 'Trigger', name: 'nightly' } },
    { source: { name: 'nightly' } },
    'spec.source.name',
  ),
  ...branches.flatMap(([kind, at, path]) =>
    ['feature/a.lock', 'HEAD', 'refs/heads/main'].map((refused) =>
      rule(kind, at, 'must be a valid git branch name', { [path]: 'feature/a-1.x' }, { [path]: refused }),
    ),
  ),
  ...resourceParents.flatMap(([kind, path]) =>
    resourceBounds.map(([name, most, above]) =>
      rule(
        kind,
        `spec.${path}.${name}`,
        `must be at most ${most}`,
        { [`${path}.${name}`]: most },
        { [`${path}.${name}`]: above },
      ),
    ),
  ),
  ...resourcesOf.flatMap(([kind, path]) =>
    resourceBounds.map(([name]) =>
      rule(
        kind,
        `spec.${path}`,
        `requests.${name} must not exceed limits.${name}`,
        { [path]: { requests: { [name]: '1000m' }, limits: { [name]: 1 } } },
        { [path]: { requests: { [name]: '2' }, limits: { [name]: '1999m' } } },
      ),
    ),
  ),
  ...workspacesOf.map(([kind, path]) =>
    rule(
      kind,
      `spec.${path}.size`,
      'must be between 1Gi and 500Gi',
      { [`${path}.size`]: '1Gi' },
      { [`${path}.size`]: '1023Mi' },
    ),
  ),
  ...workspacesOf.map(([kind, path]) =>
    rule(
      kind,
      `spec.${path}`,
      'storageClassName and reclaimPolicy need type Persistent',
      { [path]: { type: 'Persistent', reclaimPolicy: 'Retain' } },
      { [path]: { type: 'Ephemeral', reclaimPolicy: 'Delete' } },
      `spec.${path}.type`,
    ),
  ),
  ...lifecyclesOf.map(([kind, path]) =>
    rule(
      kind,
      `spec.${path}`,
      'idleSuspendAfterSeconds must be below idleDeleteAfterSeconds',
      { [path]: { idleSuspendAfterSeconds: 60, idleDeleteAfterSeconds: 0 } },
      { [path]: { idleSuspendAfterSeconds: 60, idleDeleteAfterSeconds: 60 } },
      `spec.${path}.idleSuspendAfterSeconds`,
    ),
  ),
];

const immutable = (
  field: string,
  from: SpecValues,
  refused: readonly SpecValues[],
  message = `spec.${field} is immutable`,
): TransitionCase => ({
  kind: 'Session',
  at: 'spec',
  message,
  field: `spec.${field}`,
  from,
  accepted: { ...from, restartToken: 'again' },
  refused,
});

/** Cases for rules that compare with the stored object; each also adds or removes the field. Source: K9. */
export const TRANSITION_CASES: readonly TransitionCase[] = [
  {
    kind: 'Project',
    at: 'spec.repository',
    message: 'spec.repository.url is immutable',
    field: 'spec.repository.url',
    from: {},
    accepted: { 'repository.defaultBranch': 'trunk' },
    refused: [{ 'repository.url': 'https://git.example.com/team/other.git' }],
  },
  immutable('projectRef', {}, [{ 'projectRef.name': 'other' }]),
  immutable('mode', { prompt: 'go' }, [{ prompt: 'go', mode: 'Task' }]),
  immutable(
    'prompt',
    { prompt: 'go' },
    [{ prompt: 'stop' }, {}],
    'spec.prompt is immutable; send further prompts through the REST API',
  ),
  immutable('branch', {}, [{ 'branch.name': 'work' }]),
  immutable('workspace', { 'workspace.type': 'Persistent' }, [{ 'workspace.type': 'Ephemeral' }, {}]),
  immutable('source', {}, [{ source: { kind: 'Channel', name: 'chat' } }]),
];
