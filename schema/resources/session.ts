// The Session: one agent at work on one branch of a Project, declared in Kubernetes. Spec and status with every bound.
// It must not know how a Session is started or run. No `.refine()` or `.transform()`: rules are CEL. Source: 10-kubernetes §3.
import { z } from 'zod';
import { defineKind } from '../define-kind.ts';
import { turnOutcome } from '../events/envelope.ts';
import {
  AS_SET,
  BranchName,
  ChangeToken,
  CommitId,
  cel,
  celRules,
  counter,
  DnsLabel46,
  immutableField,
  integer,
  keyedBy,
  MicroUsd,
  ModelName,
  Slug,
  Timestamp,
  text,
  Uid,
} from '../primitives.ts';
import { ConditionSchema } from './conditions.ts';
import {
  HARNESS_REASONS,
  LifecycleSchema,
  OPERATING_MODES,
  ResourcesSchema,
  WorkspaceSchema,
} from './sandbox-fields.ts';

export const SESSION_MODES = ['Interactive', 'Task'] as const;
export const SOURCE_KINDS = ['User', 'Trigger', 'Channel', 'Child'] as const;
/** Phases of a Session, for people and columns; derived. Source: 10-kubernetes §4. */
export const SESSION_PHASES = [
  'Pending',
  'Starting',
  'Running',
  'Stopping',
  'Suspended',
  'Succeeded',
  'Failed',
  'Expired',
  'Deleting',
] as const;
export type SessionPhase = (typeof SESSION_PHASES)[number];
export const AGENT_SOURCES = ['Session', 'Project', 'Manifest'] as const;
export type AgentSource = (typeof AGENT_SOURCES)[number];
export const MODEL_SOURCES = ['Session', 'Agent', 'Project', 'Platform'] as const;
export type ModelSource = (typeof MODEL_SOURCES)[number];
/** Where the running configuration comes from. Source: A172. */
export const CONFIG_SOURCES = ['release', 'image-default', 'workspace'] as const;
export const ACTIVITY_STATES = ['Idle', 'Working', 'WaitingForInput'] as const;
export const SUSPENSION_REASONS = ['Requested', 'Idle', 'Budget', 'ProjectSuspended'] as const;
export type SuspensionReason = (typeof SUSPENSION_REASONS)[number];
export const HEALTH_STATES = ['Answering', 'Silent', 'Unknown'] as const;

/** What a failure costs: a try with its cool-down, nothing (start again at once), or the whole Session. */
type FailureRule = Readonly<{ effect: 'Counts' | 'StartsAgain' | 'Terminal'; retryable: boolean }>;
const COUNTS: FailureRule = { effect: 'Counts', retryable: true };
const STARTS_AGAIN: FailureRule = { effect: 'StartsAgain', retryable: true };
const TERMINAL: FailureRule = { effect: 'Terminal', retryable: false };

/** Every failure category with what it costs. Source: 10-kubernetes §4, Failures. */
export const FAILURES = {
  Unschedulable: COUNTS,
  ImagePull: COUNTS,
  VolumeAttach: COUNTS,
  CloneFailed: COUNTS,
  HarnessBoot: COUNTS,
  ConfigProof: COUNTS,
  StartDeadline: COUNTS,
  Rejected: COUNTS,
  NameTaken: COUNTS,
  OOMKilled: COUNTS,
  StorageLimit: COUNTS,
  DaemonExit: COUNTS,
  Drained: STARTS_AGAIN,
  Preempted: STARTS_AGAIN,
  Evicted: STARTS_AGAIN,
  NodeShutdown: STARTS_AGAIN,
  NodeLost: STARTS_AGAIN,
  TurnFailed: TERMINAL,
  Aborted: TERMINAL,
  LifetimeExceeded: TERMINAL,
} as const satisfies Record<string, FailureRule>;
export type FailureCategory = keyof typeof FAILURES;
export const FAILURE_CATEGORIES = Object.keys(FAILURES) as [FailureCategory, ...FailureCategory[]];

const Source = z
  .object({
    kind: z
      .enum(SOURCE_KINDS)
      .default('User')
      .describe('What started the Session; all but User are set by the control plane. Default User. Immutable.'),
    name: text(128).min(1).optional().describe('Trigger or channel that started it. Immutable.'),
    parentRef: z
      .object({
        name: DnsLabel46.describe('Name of the parent Session.'),
        uid: Uid.describe('Uid of the parent Session.'),
      })
      .optional()
      .describe('Session that started it. Immutable.'),
  })
  .meta(
    celRules(
      cel(
        `has(self.parentRef) == (self.kind == 'Child')`,
        'parentRef is required for kind Child and refused for others',
        '.parentRef',
      ),
      cel(
        `has(self.name) == (self.kind in ['Trigger', 'Channel'])`,
        'name is required for kinds Trigger and Channel and refused for others',
        '.name',
      ),
    ),
  );

export const SessionSpecSchema = z
  .object({
    projectRef: z
      .object({ name: DnsLabel46.describe('Name of the Project, in the same namespace.') })
      .describe('The Project, in the same namespace. Immutable.'),
    mode: z
      .enum(SESSION_MODES)
      .default('Interactive')
      .describe('Interactive stays for further prompts; Task ends with the turn of spec.prompt. Immutable.'),
    prompt: text(8192)
      .min(1)
      .meta(
        celRules(
          cel('size(bytes(self)) <= 8192', 'must be at most 8192 bytes; send longer prompts through the REST API'),
        ),
      )
      .optional()
      .describe('First prompt, at most 8192 bytes, run once. Required for mode Task. Immutable.'),
    agent: Slug.optional().describe(
      'Agent of the manifest. Default: that of the Project, then of the manifest. A change counts from the next turn.',
    ),
    model: ModelName.optional().describe(
      'Model as provider/model. Default: that of the agent, Project or platform. A change counts from the next turn.',
    ),
    branch: z
      .object({
        name: BranchName.optional().describe(
          'Session branch; an existing one is continued. Default beeuni/<name>-<uid5>. Immutable.',
        ),
        base: BranchName.optional().describe(
          'Branch it starts from. Default: the default branch of the Project. Immutable.',
        ),
      })
      .optional()
      .describe('Git branch of the Session. Immutable.'),
    operatingMode: z
      .enum(OPERATING_MODES)
      .default('Running')
      .describe('The state that is asked for; Suspended removes the sandbox and keeps the Session. Default Running.'),
    restartToken: ChangeToken.optional().describe('A changed value asks for a restart and clears a failure.'),
    lifecycle: LifecycleSchema.optional().describe(
      'When the Session sleeps, ends or is deleted. Default: that of the Project, then the installation.',
    ),
    sandbox: z
      .object({
        template: Slug.optional().describe(
          'Sandbox template of the manifest. Default: that of the agent. A change counts from the next start.',
        ),
        resources: ResourcesSchema.optional().describe(
          'Resources of the sandbox. Default: template, Project, profile. A change counts from the next start.',
        ),
      })
      .optional()
      .describe('Template and resources of the sandbox.'),
    workspace: WorkspaceSchema.optional().describe(
      'Where the checkout lives. Default: that of the Project, then the installation. Immutable.',
    ),
    scope: z
      .object({
        secrets: z
          .array(text(128).min(1))
          .max(64)
          .meta(AS_SET)
          .optional()
          .describe(
            'Secrets that the agent may see, of those it is granted; empty is none. Default: all that are granted.',
          ),
      })
      .optional()
      .describe('Narrows what the agent is granted.'),
    limits: z
      .object({
        budgetMicroUSD: MicroUsd.optional().describe(
          'Money of the Session in millionths of a US dollar; 0 allows none. Default: unlimited.',
        ),
        onReached: z
          .enum(['Fail', 'Suspend'])
          .default('Fail')
          .describe(
            'When the budget is reached: Fail ends the turn with an error, Suspend suspends the Session. Default Fail.',
          ),
      })
      .prefault({})
      .describe('Budget of the Session.'),
    source: Source.prefault({ kind: 'User' }).describe('What started the Session. Leave it out. Immutable.'),
  })
  .meta(
    celRules(
      cel(`self.mode != 'Task' || has(self.prompt)`, 'spec.prompt is required when spec.mode is Task', '.prompt'),
      immutableField('projectRef', 'spec.projectRef is immutable'),
      immutableField('mode', 'spec.mode is immutable'),
      immutableField('prompt', 'spec.prompt is immutable; send further prompts through the REST API'),
      immutableField('branch', 'spec.branch is immutable'),
      immutableField('workspace', 'spec.workspace is immutable'),
      immutableField('source', 'spec.source is immutable'),
    ),
  );

const id64 = text(64);
const count = counter();

export const SessionStatusSchema = z.object({
  observedGeneration: count.optional().describe('Generation that this status answers.'),
  observedRestartToken: ChangeToken.optional().describe('spec.restartToken that the last start answered.'),
  phase: z.enum(SESSION_PHASES).optional().describe('Summary for people. Programs read conditions.'),
  harness: z
    .object({
      id: id64.describe('Harness of the current or last sandbox.'),
      version: id64.optional().describe('Version, as the daemon reports it.'),
      reason: z.enum(HARNESS_REASONS).describe('Why this harness was chosen.'),
      image: text(512).optional().describe('Image of the sandbox.'),
      capabilities: z
        .array(id64)
        .max(64)
        .meta(AS_SET)
        .optional()
        .describe('Optional features that the harness offers.'),
    })
    .optional()
    .describe('Harness; chosen at start, restart and resume only.'),
  agent: z
    .object({ name: text(128).describe('Agent.'), source: z.enum(AGENT_SOURCES).describe('Deciding layer.') })
    .optional()
    .describe('Effective agent.'),
  model: z
    .object({ name: text(256).describe('Model.'), source: z.enum(MODEL_SOURCES).describe('Deciding layer.') })
    .optional()
    .describe('Effective model.'),
  config: z
    .object({
      releaseId: id64.optional().describe('Release that runs.'),
      short: text(12).optional().describe('First 12 characters of releaseId.'),
      desiredReleaseId: id64.optional().describe('Release that should run.'),
      source: z.enum(CONFIG_SOURCES).optional().describe('release, image-default or workspace.'),
      proven: z.boolean().optional().describe('Whether the running configuration was proven.'),
      fallbackReason: text(512).optional().describe('Why another release than the desired one runs.'),
      failedReleaseId: id64.optional().describe('Release that could not be proven.'),
    })
    .optional()
    .describe('Configuration, as the daemon reports it.'),
  pod: z
    .object({
      name: text(253).optional().describe('Name of the pod that belongs to the Session.'),
      uid: Uid.optional().describe('Uid of that pod.'),
      attempt: count.describe('Number of the current or last start.'),
      node: text(253).optional().describe('Node of the pod.'),
      ip: text(45).optional().describe('Address of the pod.'),
      imageID: text(512).optional().describe('Image that runs, with digest.'),
      hash: id64.optional().describe('Hash of the rendered pod.'),
      current: z.boolean().optional().describe('False: a start now would give another pod.'),
      runtimeClassName: text(63).optional().describe('RuntimeClass in use; empty if it was tried without.'),
      userNamespace: z.boolean().optional().describe('Whether the pod has its own user namespace.'),
    })
    .optional()
    .describe('The pod that is bound to the Session.'),
  generation: count.optional().describe('Number of the latest claim.'),
  workspace: z
    .object({
      claimName: text(253).optional().describe('Volume claim of the workspace.'),
      branch: text(200).optional().describe('Session branch.'),
      commit: CommitId.optional().describe('Newest commit of the session branch that the daemon reported.'),
    })
    .optional()
    .describe('Volume and branch.'),
  activity: z
    .object({
      state: z.enum(ACTIVITY_STATES).describe('Idle, Working or WaitingForInput.'),
      since: Timestamp.describe('When this state began.'),
      turnId: id64.optional().describe('Turn that runs.'),
    })
    .optional()
    .describe('What the agent is doing; absent without a sandbox.'),
  suspension: z
    .object({
      reason: z.enum(SUSPENSION_REASONS).describe('Requested, Idle, Budget or ProjectSuspended.'),
      since: Timestamp.describe('When it was suspended.'),
    })
    .optional()
    .describe('Why the Session is suspended.'),
  failure: z
    .object({
      category: z.enum(FAILURE_CATEGORIES).describe('What failed.'),
      message: text(512).describe('The cause, as a sentence.'),
      retryable: z.boolean().describe('Whether another start may help.'),
      attempts: integer(0, 1000).describe('Failures since the count was last dropped.'),
      since: Timestamp.describe('When it failed.'),
      nextRetryTime: Timestamp.optional().describe('When the next try is made or allowed.'),
    })
    .optional()
    .describe('The last failure; gone after a restart, a completed turn or ten minutes of Ready.'),
  lastTurn: z
    .object({
      id: id64.describe('Turn.'),
      outcome: turnOutcome.describe('How it ended.'),
      startedAt: Timestamp.optional().describe('When it started.'),
      finishedAt: Timestamp.optional().describe('When it ended.'),
      summary: text(1024).optional().describe('Head of the last visible answer.'),
    })
    .optional()
    .describe('The last turn that ended.'),
  health: z
    .object({
      state: z.enum(HEALTH_STATES).describe('Answering, Silent or Unknown.'),
      lastAnswerTime: Timestamp.optional().describe('Last answer, written when the state leaves Answering.'),
    })
    .optional()
    .describe('Whether the daemon answers.'),
  startedAt: Timestamp.optional().describe('When the current attempt started.'),
  readyAt: Timestamp.optional().describe('When the current attempt became ready.'),
  finishedAt: Timestamp.optional().describe('When the Session ended.'),
  expiresAt: Timestamp.optional().describe('When maxLifetimeSeconds is over.'),
  conditions: z
    .array(ConditionSchema)
    .max(16)
    .meta(keyedBy('type'))
    .optional()
    .describe('The truth about the Session, Ready first.'),
});

/** The kind Session. Columns: HARNESS, PHASE, READY, ACTIVITY, MODEL, AGE; wide: PROJECT, AGENT, BRANCH, POD, NODE, RELEASE, REASON. */
export const SessionKind = defineKind({
  group: 'beeuni.dev',
  version: 'v1alpha1',
  kind: 'Session',
  plural: 'sessions',
  shortNames: ['bsess'],
  description: 'One agent at work on one branch of a Project.',
  spec: SessionSpecSchema,
  status: SessionStatusSchema,
  columns: [
    { name: 'Harness', type: 'string', jsonPath: '.status.harness.id' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Ready', type: 'string', jsonPath: `.status.conditions[?(@.type=="Ready")].status` },
    { name: 'Activity', type: 'string', jsonPath: '.status.activity.state' },
    { name: 'Model', type: 'string', jsonPath: '.status.model.name' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Project', type: 'string', jsonPath: '.spec.projectRef.name', priority: 1 },
    { name: 'Agent', type: 'string', jsonPath: '.status.agent.name', priority: 1 },
    { name: 'Branch', type: 'string', jsonPath: '.status.workspace.branch', priority: 1 },
    { name: 'Pod', type: 'string', jsonPath: '.status.pod.name', priority: 1 },
    { name: 'Node', type: 'string', jsonPath: '.status.pod.node', priority: 1 },
    { name: 'Release', type: 'string', jsonPath: '.status.config.short', priority: 1 },
    { name: 'Reason', type: 'string', jsonPath: `.status.conditions[?(@.type=="Ready")].reason`, priority: 1 },
  ],
});

/** Spec of a Session as people write it: defaults are optional. */
export type SessionSpecInput = z.input<typeof SessionSpecSchema>;
export type SessionStatus = z.output<typeof SessionStatusSchema>;
/** A stored Session as code reads it. */
export type Session = typeof SessionKind.$object;
