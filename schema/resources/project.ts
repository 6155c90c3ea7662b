// The Project: a git repository with an agent configuration, declared in Kubernetes. Spec and status with every bound.
// It must not know how a Project is synced or reconciled. No `.refine()` or `.transform()`: rules are CEL. Source: 10-kubernetes §2.
import { z } from 'zod';
import { defineKind } from '../define-kind.ts';
import {
  AS_SET,
  ATOMIC,
  BranchName,
  ChangeToken,
  cel,
  celRules,
  DnsLabel63,
  durationSeconds,
  EnvName,
  ImagePattern,
  ImageRef,
  immutableField,
  integer,
  keyedBy,
  MicroUsd,
  ModelName,
  ModelPattern,
  ObjectName,
  SecretKey,
  Slug,
  text,
} from '../primitives.ts';
import { ProjectStatusSchema } from './project-status.ts';
import {
  LifecycleSchema,
  OPERATING_MODES,
  ResourceListSchema,
  ResourcesSchema,
  WorkspaceSchema,
} from './sandbox-fields.ts';

export const FLAG_STATES = ['Inherit', 'Enabled', 'Disabled'] as const;
export type FlagState = (typeof FLAG_STATES)[number];
export const EGRESS_MODES = ['Restricted', 'AllowList', 'Public'] as const;
export const DELETION_POLICIES = ['Block', 'Cascade'] as const;
export {
  FEATURE_FLAGS,
  type FeatureFlag,
  type FeatureSource,
  type ModelProblem,
  PROJECT_PHASES,
  type ProjectPhase,
  type ProjectStatus,
} from './project-status.ts';

const URL_FORM =
  String.raw`self.matches('^(https?|ssh)://([^/@\\s]+@)?([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?/[^\\s]+$') || ` +
  String.raw`self.matches('^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+:[^/\\s][^\\s]*$')`;

const SecretKeyRef = z.object({
  name: ObjectName.describe('Name of the Secret, in the namespace of the Project.'),
  key: SecretKey.describe('Key in the Secret.'),
});

const Repository = z
  .object({
    url: text(1024)
      .min(1)
      .meta(
        celRules(
          cel(URL_FORM, 'must be an https, http or ssh URL, or user@host:path'),
          cel(
            `!self.matches('^[hH][tT][tT][pP][sS]?://[^/]*@')`,
            'must not contain credentials; use spec.repository.credentialsSecretRef',
          ),
        ),
      )
      .describe('The git repository: an https, http or ssh URL, or user@host:path. No credentials in it. Immutable.'),
    defaultBranch: BranchName.optional().describe('Base of releases and of new sessions. Default: HEAD of the remote.'),
    credentialsSecretRef: z
      .object({ name: ObjectName.describe('Name of the Secret, in the namespace of the Project.') })
      .optional()
      .describe(
        'Secret with username and password, token, or ssh-privatekey (and known_hosts). Read by the control plane only.',
      ),
    forcePush: z
      .enum(['Forbidden', 'Allowed'])
      .default('Forbidden')
      .describe('Whether a session may force-push its own branch. Default Forbidden.'),
    pollIntervalSeconds: durationSeconds(0, 86_400)
      .optional()
      .describe('How often the remote is looked at; 0 is off. Default: that of the installation (60).'),
  })
  .meta(celRules(immutableField('url', 'spec.repository.url is immutable')));

const flag = () => z.enum(FLAG_STATES).default('Inherit');

const Features = z.object({
  llmGateway: flag().describe(
    'Model calls through the gateway; off runs opencode, whose turns can call no model yet. Default Inherit.',
  ),
  piHarness: flag().describe('Run the experimental harness pi. Default Inherit.'),
  configReleases: flag().describe('Serve agent configuration from releases of the default branch. Default Inherit.'),
  warmSessions: flag().describe('Keep a sandbox ready before it is asked for. Default Inherit.'),
});

const SecretGrant = z.object({
  env: EnvName.describe('Environment variable that carries the value. Names that start with BEEUNI_ are reserved.'),
  identifier: text(128)
    .min(1)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/)
    .optional()
    .describe('Name by which the manifest refers to this secret. Default: env.'),
  secretRef: SecretKeyRef.describe('Where the value is. It is read by the control plane only.'),
  agents: z
    .array(
      text(128)
        .min(1)
        .regex(/^(\*|[a-z0-9][a-z0-9_-]{0,127})$/),
    )
    .min(1)
    .max(32)
    .meta({
      ...AS_SET,
      ...celRules(cel(`size(self) == 1 || !self.exists(a, a == '*')`, `'*' cannot be combined with names`)),
    })
    .describe(`Agents that may be granted the secret, or ['*'] for all. The manifest still has to grant it.`),
});

const ProviderKey = z.object({
  provider: Slug.describe('Provider that the key belongs to.'),
  env: EnvName.describe('Environment variable of the key. Names that start with BEEUNI_ are reserved.'),
  secretRef: SecretKeyRef.describe('Where the key is.'),
});

const Toleration = z.object({
  key: text(317).optional().describe('Taint key; absent with operator Exists matches all.'),
  operator: z.enum(['Exists', 'Equal']).optional().describe('Default Equal.'),
  value: text(63).optional().describe('Taint value, for operator Equal.'),
  effect: z
    .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
    .optional()
    .describe('Taint effect; absent matches all.'),
  tolerationSeconds: integer(0, 2_592_000)
    .optional()
    .describe('How long a NoExecute taint is tolerated. Default: for ever.'),
});

const Sandbox = z.object({
  image: ImageRef.optional().describe(
    'Image of the sandbox: that of the platform, or one built on it. Default: that of the installation.',
  ),
  imagePullSecrets: z
    .array(ObjectName)
    .max(4)
    .meta(AS_SET)
    .optional()
    .describe('Names of Secrets for pulling the image.'),
  allowedImages: z
    .array(ImagePattern)
    .max(16)
    .meta(AS_SET)
    .optional()
    .describe('Images that a template of the manifest may name, exact or ending in *. Default: none.'),
  runtimeClassName: DnsLabel63.optional().describe(
    'RuntimeClass of the pod; the installation must allow it. Default: its policy.',
  ),
  resources: ResourcesSchema.optional().describe(
    'Resources of sessions that say nothing. Default: the profile of the harness.',
  ),
  workspace: WorkspaceSchema.optional().describe(
    'Workspace of sessions that say nothing. Default: that of the installation.',
  ),
  maxResources: ResourceListSchema.optional().describe(
    'Ceiling: manifest templates are clamped to it, Sessions above it refused. Default: resources.limits, then the installation.',
  ),
  nodeSelector: z
    .record(text(317), text(63))
    .meta({ maxProperties: 8 })
    .optional()
    .describe('Labels that the node must have. Default: that of the installation.'),
  tolerations: z
    .array(Toleration)
    .max(8)
    .meta(ATOMIC)
    .optional()
    .describe('Taints that the pod tolerates. Default: those of the installation.'),
  priorityClassName: ObjectName.optional().describe('PriorityClass of the pod. Default: that of the installation.'),
});

const EgressRule = z.object({
  cidr: text(49)
    .min(1)
    .meta(
      celRules(
        cel(
          'isCIDR(self) && string(cidr(self).masked()) == self',
          'must be a network in canonical CIDR form, for example 203.0.113.0/24',
        ),
      ),
    )
    .describe('Network, for example 203.0.113.0/24. A private range counts only if the installation allows it.'),
  ports: z
    .array(
      z.object({
        port: z.int().min(1).max(65_535).meta({ format: 'int32' }).describe('Port number.'),
        protocol: z.enum(['TCP', 'UDP']).default('TCP').describe('TCP, the default, or UDP.'),
      }),
    )
    .min(1)
    .max(16)
    .meta(ATOMIC)
    .describe('Ports that may be reached in this network.'),
});

const Egress = z
  .object({
    mode: z
      .enum(EGRESS_MODES)
      .default('Restricted')
      .describe(
        'Restricted: control plane and DNS only. AllowList: also allow. Public: also ports 80 and 443 of public addresses. Default Restricted.',
      ),
    allow: z
      .array(EgressRule)
      .max(64)
      .meta(keyedBy('cidr'))
      .optional()
      .describe('Networks that sandboxes may reach in modes AllowList and Public.'),
  })
  .meta(
    celRules(
      cel(
        `self.mode != 'AllowList' || (has(self.allow) && size(self.allow) > 0)`,
        'mode AllowList needs at least one entry in allow',
        '.allow',
      ),
      cel(
        `self.mode != 'Restricted' || !has(self.allow) || size(self.allow) == 0`,
        'mode Restricted takes no allow list',
        '.allow',
      ),
    ),
  );

const Limits = z
  .object({
    maxSessions: integer(0, 10_000)
      .default(100)
      .describe('Unfinished Sessions; one more is not accepted. Default 100.'),
    maxRunning: integer(0, 2_000).default(20).describe('Sandboxes at once; one more waits its turn. Default 20.'),
    dailyRuns: integer(0, 1_000_000).optional().describe('Turns per UTC day; 0 allows none. Default: unlimited.'),
    dailyBudgetMicroUSD: MicroUsd.optional().describe(
      'Money per UTC day in millionths of a US dollar; 0 allows none. Default: unlimited.',
    ),
    monthlyBudgetMicroUSD: MicroUsd.optional().describe(
      'Money per UTC month in millionths of a US dollar; 0 allows none. Default: unlimited.',
    ),
  })
  .meta(
    celRules(
      cel(
        '!has(self.dailyBudgetMicroUSD) || !has(self.monthlyBudgetMicroUSD) || self.dailyBudgetMicroUSD <= self.monthlyBudgetMicroUSD',
        'dailyBudgetMicroUSD must not exceed monthlyBudgetMicroUSD',
        '.dailyBudgetMicroUSD',
      ),
    ),
  );

export const ProjectSpecSchema = z
  .object({
    operatingMode: z
      .enum(OPERATING_MODES)
      .default('Running')
      .describe('Suspended: no session starts and running ones are suspended. Default Running.'),
    repository: Repository.describe('The git repository.'),
    manifestPath: text(255)
      .min(1)
      .meta(
        celRules(
          cel(
            String.raw`!self.matches('(^|/)[.]{0,2}(/|$)|[\\x00-\\x1f\\\\]')`,
            'must be a relative path inside the repository',
          ),
        ),
      )
      .default('beeuni.yaml')
      .describe('Path of the manifest in the repository. Default beeuni.yaml.'),
    syncToken: ChangeToken.optional().describe('A changed value asks for a sync now.'),
    features: Features.prefault({}).describe('Feature flags of this Project.'),
    defaults: z
      .object({
        agent: Slug.optional().describe('Agent of sessions that name none. Default: default_agent of the manifest.'),
        model: ModelName.optional().describe(
          'Model of sessions whose agent names none, as provider/model. Default: that of the platform.',
        ),
        lifecycle: LifecycleSchema.optional().describe(
          'Lifecycle of sessions that say nothing. Default: that of the installation.',
        ),
      })
      .optional()
      .describe('For sessions that say nothing.'),
    models: z
      .object({
        allowed: z
          .array(ModelPattern)
          .max(64)
          .meta(AS_SET)
          .optional()
          .describe('Models that may be used: provider/model or provider/*. Default: all that are enabled.'),
      })
      .optional()
      .describe('Which registered models this Project may use.'),
    limits: Limits.prefault({}).describe('Sessions, sandboxes, turns and money.'),
    secrets: z
      .array(SecretGrant)
      .max(64)
      .meta(keyedBy('env'))
      .optional()
      .describe('Secrets that agents may be granted. Nothing is granted by default.'),
    providerKeys: z
      .array(ProviderKey)
      .max(16)
      .meta(keyedBy('provider'))
      .optional()
      .describe('Provider keys for sandboxes while llm_gateway is off; not delivered yet.'),
    sandbox: Sandbox.optional().describe('Image, resources, workspace and placement of sandboxes.'),
    egress: Egress.prefault({ mode: 'Restricted' }).describe('Which networks sandboxes may reach. Default Restricted.'),
    deletionPolicy: z
      .enum(DELETION_POLICIES)
      .default('Block')
      .describe(
        'Deleting a Project with sessions: Block waits until they are gone, Cascade deletes them. Default Block.',
      ),
  })
  .meta(
    celRules(
      cel(
        '!has(self.secrets) || !has(self.providerKeys) || !self.providerKeys.exists(k, self.secrets.exists(s, s.env == k.env))',
        'an env name is used by both secrets and providerKeys',
        '.providerKeys',
      ),
    ),
  );

/** The kind Project. Columns: READY, HARNESS, MODEL, RELEASE, RUNNING, AGE; wide: SESSIONS, COMMIT, REASON. */
export const ProjectKind = defineKind({
  group: 'beeuni.dev',
  version: 'v1alpha1',
  kind: 'Project',
  plural: 'projects',
  shortNames: ['bproj'],
  description: 'A git repository with an agent configuration (beeuni.yaml), and what its sessions may use.',
  spec: ProjectSpecSchema,
  status: ProjectStatusSchema,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: `.status.conditions[?(@.type=="Ready")].status` },
    { name: 'Harness', type: 'string', jsonPath: '.status.harness.id' },
    { name: 'Model', type: 'string', jsonPath: '.status.models.default' },
    { name: 'Release', type: 'string', jsonPath: '.status.release.short' },
    { name: 'Running', type: 'integer', jsonPath: '.status.sessions.running' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Sessions', type: 'integer', jsonPath: '.status.sessions.total', priority: 1 },
    { name: 'Commit', type: 'string', jsonPath: '.status.repository.shortCommit', priority: 1 },
    { name: 'Reason', type: 'string', jsonPath: `.status.conditions[?(@.type=="Ready")].reason`, priority: 1 },
  ],
});

/** Spec of a Project as people write it: defaults are optional. */
export type ProjectSpecInput = z.input<typeof ProjectSpecSchema>;
/** Spec of a Project as code reads it: defaults are filled. */
export type ProjectSpec = z.output<typeof ProjectSpecSchema>;
/** A stored Project as code reads it. */
export type Project = typeof ProjectKind.$object;
