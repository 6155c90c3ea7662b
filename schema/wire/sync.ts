// The internal API between operator and control plane. Source: 10-kubernetes §6. Every call carries the uid and is idempotent.
// Must not know either side.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { activityBlock, configBlock, harnessBlock } from './health.ts';

const uid = z.string().min(1).max(64);
const uidParams = z.object({ uid });

/** One message about a place in a file of the repository. Lines and columns count from 1; 0 means the whole file. */
export const fileProblem = z.object({
  path: z.string().max(1024),
  line: z.int().min(0),
  column: z.int().min(0),
  code: z.string().max(64),
  message: z.string().max(512),
});

/** What is known of one agent of the manifest. */
export const syncedAgent = z.object({
  name: z.string().max(128),
  mode: z.enum(['primary', 'subagent', 'all']),
  model: z.string().max(256).nullable(),
  template: z.string().max(128).nullable(),
  secrets: z.union([z.enum(['all', 'none']), z.array(z.string())]),
});

/** One sandbox template of the manifest. Source: A89. */
export const syncedTemplate = z.object({
  slug: z.string().max(128),
  image: z.string().max(512).nullable(),
  cpu: z.string().max(32).nullable(),
  memory: z.string().max(32).nullable(),
  disk: z.string().max(32).nullable(),
});

/** Manifest of the newest commit. `lastValid` is what starts go by when the newest one is broken. */
export const syncedManifest = z.object({
  path: z.string(),
  reason: z.enum(['Valid', 'Missing', 'SyntaxError', 'SchemaError', 'VersionTooNew', 'TooLarge', 'NotRead']),
  version: z.int().nullable(),
  hash: z.string().nullable(),
  errors: z.array(fileProblem).max(20),
  warnings: z.array(fileProblem).max(20),
  lastValid: z
    .object({
      commit: z.string(),
      runtime: z.string().nullable(),
      defaultAgent: z.string(),
      agents: z.array(syncedAgent).max(64),
      templates: z.array(syncedTemplate).max(64),
      defaultTemplate: z.string().nullable(),
      ignoredKeys: z.record(z.string(), z.array(z.string())).describe('harness id to manifest keys that it ignores'),
    })
    .nullable(),
});

/** Result of looking at the remote. Reasons: 10-kubernetes §2, condition RepositoryReady. */
export const syncedRepository = z.object({
  reason: z.enum([
    'Synced',
    'Syncing',
    'Unreachable',
    'NotFound',
    'AuthFailed',
    'BranchNotFound',
    'HostKeyUnknown',
    'CertificateUnknown',
    'HostNotAllowed',
    'TooLarge',
    'TimedOut',
  ]),
  message: z.string().max(1024),
  defaultBranch: z.string().nullable(),
  commit: z.string().nullable(),
});

/** Result of reading the credentials Secret. Reasons: condition CredentialsReady. */
export const syncedCredentials = z.object({
  reason: z.enum(['Found', 'NotNeeded', 'SecretNotFound', 'KeyMissing', 'TypeUnsupported', 'AccessDenied', 'NotRead']),
  message: z.string().max(1024),
});

/** Result of checking every model name. Reasons: condition ModelsValid. */
export const syncedModels = z.object({
  reason: z.enum([
    'AllKnown',
    'UnknownModel',
    'ModelDisabled',
    'ProviderDisabled',
    'NotAllowed',
    'RegistryUnavailable',
  ]),
  message: z.string().max(1024),
  default: z.string().nullable().describe('model of a session that names nothing itself'),
  platform: z.string().nullable().default(null).describe('last layer: the model of the installation'),
  registryGeneration: z.int().min(0),
  invalid: z
    .array(
      z.object({ name: z.string(), code: z.string(), usedBy: z.string().max(256), suggestion: z.string().nullable() }),
    )
    .max(20),
});

/** Body of the sync call. */
export const syncRequest = z.object({
  uid,
  generation: z.int().min(0),
  syncToken: z.string().max(64).nullable(),
  repository: z.object({
    url: z.string().max(1024),
    defaultBranch: z.string().max(200).nullable(),
    credentialsSecretName: z.string().max(253).nullable(),
    forcePush: z.enum(['Forbidden', 'Allowed']),
    pollIntervalSeconds: z.int().min(0).max(86_400).nullable(),
  }),
  manifestPath: z.string().max(255),
  features: z.record(z.string(), z.boolean()).describe('effective flags'),
  defaults: z.object({ agent: z.string().max(128).nullable(), model: z.string().max(256).nullable() }),
  allowedModels: z.array(z.string().max(256)).max(64).nullable(),
  secrets: z
    .array(
      z.object({
        env: z.string().max(64),
        identifier: z.string().max(128).nullable(),
        secretName: z.string().max(253),
        key: z.string().max(253),
        agents: z.array(z.string()).max(32),
      }),
    )
    .max(64),
});

/** Everything the control plane knows of a project: answer of the sync and data of a project fact. */
export const projectFact = z.object({
  kind: z.literal('project'),
  uid,
  generation: z.int().min(0).describe('Project generation that this answers'),
  syncToken: z.string().nullable(),
  state: z.enum(['running', 'done']),
  repository: syncedRepository,
  credentials: syncedCredentials,
  manifest: syncedManifest,
  models: syncedModels,
  release: z.object({
    reason: z.enum(['Published', 'ReleasesOff', 'Publishing', 'BuildFailed', 'TooLarge', 'Quarantined', 'NotBuilt']),
    current: z.string().nullable(),
    commit: z.string().nullable(),
  }),
  budget: z.object({
    reached: z.boolean().describe('the money of a day or month is used up'),
    runsReached: z.boolean().default(false).describe('the turns of the day are used up'),
    message: z.string().max(512),
  }),
});

/** What the control plane knows of a session. A fact of another pod uid than status.pod.uid is ignored. */
export const sessionFact = z.object({
  kind: z.literal('session'),
  uid,
  podUid: z.string().max(64).nullable(),
  generation: z.int().min(0),
  health: z
    .object({
      state: z.enum(['Answering', 'Silent', 'Unknown']),
      lastAnswerAt: z.iso.datetime(),
      runtimeReady: z.boolean(),
      repoReady: z.boolean(),
      branch: z.string().nullable(),
      commit: z.string().nullable(),
      pushError: z.string().nullable().default(null),
      bootError: z.string().nullable(),
      bootErrorCategory: z.enum(['CloneFailed', 'HarnessBoot', 'ConfigProof', 'DaemonExit']).nullable(),
      harness: harnessBlock.pick({ id: true, version: true, state: true, ready: true, error: true }),
      capabilities: z.array(z.string()).max(64),
      config: configBlock,
      isolation: z.enum(['enforced', 'not-enforced', 'not-probed']),
    })
    .nullable(),
  activity: activityBlock.nullable(),
  idleSince: z.iso.datetime().nullable(),
  lastTurn: z
    .object({
      id: z.string(),
      promptId: z.string().nullable(),
      isSpecPrompt: z.boolean().describe('the turn of spec.prompt'),
      outcome: z.enum(['Succeeded', 'Failed', 'Aborted', 'Interrupted']),
      final: z.boolean(),
      message: z.string().nullable(),
      startedAt: z.iso.datetime(),
      finishedAt: z.iso.datetime(),
      summary: z.string().max(1024).nullable(),
    })
    .nullable(),
  specPromptFinal: z
    .object({ outcome: z.enum(['Succeeded', 'Failed', 'Aborted', 'Interrupted']), message: z.string().nullable() })
    .nullable()
    .describe('end of the turn of spec.prompt, once it is final'),
  wanted: z.boolean().describe('an undelivered prompt, an explicit start, or a raised budget'),
  fencedPodUid: z.string().nullable().describe('the attempt that takes no more prompts'),
  budgetReached: z.boolean(),
});

/** Uid of the one fact about the provider registry. */
export const REGISTRY_UID = 'registry';

/** The names of the registry, so that the operator judges a Session's model by the rule that everybody uses. */
export const registryFact = z.object({
  kind: z.literal('registry'),
  uid: z.literal(REGISTRY_UID),
  generation: z.int().min(0),
  providers: z.array(
    z.object({
      id: z.string().max(64),
      enabled: z.boolean(),
      models: z.array(
        z.object({
          id: z.string().max(192),
          enabled: z.boolean(),
          retired: z.object({ replacement: z.string().max(256).nullable() }).optional(),
        }),
      ),
    }),
  ),
});

/** An object of this uid has no facts any more. */
export const goneFact = z.object({ kind: z.literal('gone'), uid });

/** One frame of the facts stream. `cursor` resumes after this frame. */
export const factsFrame = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reset') }),
  z.object({
    type: z.literal('fact'),
    cursor: z.string(),
    fact: z.discriminatedUnion('kind', [projectFact, sessionFact, registryFact, goneFact]),
  }),
  z.object({ type: z.literal('snapshot-end'), cursor: z.string() }),
  z.object({ type: z.literal('heartbeat'), at: z.iso.datetime() }),
]);

/** Interval of heartbeats on the facts stream; broken for 30 s means the control plane is down. Units: milliseconds. */
export const FACTS_HEARTBEAT_INTERVAL_MS = 15_000;

/** `PUT /internal/v1/projects/{namespace}/{name}/sync`. */
export const syncProjectRoute = defineRoute({
  operationId: 'syncProject',
  listener: 'internal',
  method: 'PUT',
  path: '/internal/v1/projects/:namespace/:name/sync',
  summary: 'Look at the repository and validate its configuration',
  auth: { kind: 'operator' },
  params: z.object({ namespace: z.string().max(63), name: z.string().max(46) }),
  body: syncRequest,
  responses: { 200: projectFact },
});

/** `GET /internal/v1/facts?after=`: snapshot, then changes, as NDJSON without end. */
export const factsRoute = defineRoute({
  operationId: 'streamFacts',
  listener: 'internal',
  method: 'GET',
  path: '/internal/v1/facts',
  summary: 'Stream what the control plane knows',
  auth: { kind: 'operator' },
  query: z.object({ after: z.string().max(64).optional() }),
  stream: 'ndjson',
  responses: { 200: factsFrame },
});

/** `POST /internal/v1/sessions/{uid}/stop`: the fence of one attempt. 409 `not_idle` for turn `none` while it works. */
export const stopSessionRoute = defineRoute({
  operationId: 'stopSession',
  listener: 'internal',
  method: 'POST',
  path: '/internal/v1/sessions/:uid/stop',
  summary: 'Stop prompts of one attempt and end its turn',
  auth: { kind: 'operator' },
  params: uidParams,
  body: z.object({
    podUid: z.string().max(64),
    attempt: z.int().min(1),
    reason: z.string().max(64),
    turn: z.enum(['none', 'wait', 'abort']),
    deadlineSeconds: z.int().min(0).max(3600),
  }),
  responses: { 200: z.object({ state: z.literal('stopped') }), 202: z.object({ state: z.literal('draining') }) },
});

/** `POST /internal/v1/sessions/{uid}/close`: revokes credentials, ends open turns; repeated: 204. */
export const closeSessionRoute = defineRoute({
  operationId: 'closeSession',
  listener: 'internal',
  method: 'POST',
  path: '/internal/v1/sessions/:uid/close',
  summary: 'End everything of a deleted session',
  auth: { kind: 'operator' },
  params: uidParams,
  body: z.object({ reason: z.string().max(64) }),
  responses: { 204: z.null() },
});

/** `POST /internal/v1/sessions/{uid}/pod-gone`: the sandbox ended; its open turn gets its terminal event. Source: D17. */
export const podGoneRoute = defineRoute({
  operationId: 'podGone',
  listener: 'internal',
  method: 'POST',
  path: '/internal/v1/sessions/:uid/pod-gone',
  summary: 'Say that the pod of an attempt is gone',
  auth: { kind: 'operator' },
  params: uidParams,
  body: z.object({ podUid: z.string().max(64), reason: z.string().max(64) }),
  responses: { 204: z.null() },
});

/** `POST /internal/v1/projects/{uid}/close`: drops mirror and releases; repeated: 204. */
export const closeProjectRoute = defineRoute({
  operationId: 'closeProject',
  listener: 'internal',
  method: 'POST',
  path: '/internal/v1/projects/:uid/close',
  summary: 'Drop everything of a deleted project',
  auth: { kind: 'operator' },
  params: uidParams,
  body: z.object({ reason: z.string().max(64) }),
  responses: { 204: z.null() },
});

/** `POST /internal/v1/projects/{uid}/secrets`: a referenced Secret changed. */
export const secretChangedRoute = defineRoute({
  operationId: 'secretChanged',
  listener: 'internal',
  method: 'POST',
  path: '/internal/v1/projects/:uid/secrets',
  summary: 'Read a Secret again and push it to running sandboxes',
  auth: { kind: 'operator' },
  params: uidParams,
  body: z.object({ secretName: z.string().max(253), resourceVersion: z.string().max(64) }),
  responses: { 202: z.object({}) },
});

/** See syncRequest. */
export type SyncRequest = z.output<typeof syncRequest>;
/** See projectFact. */
export type ProjectFact = z.output<typeof projectFact>;
/** See sessionFact. */
export type SessionFact = z.output<typeof sessionFact>;
/** See registryFact. */
export type RegistryFact = z.output<typeof registryFact>;
/** See factsFrame. */
export type FactsFrame = z.output<typeof factsFrame>;
/** See fileProblem. */
export type FileProblem = z.output<typeof fileProblem>;
