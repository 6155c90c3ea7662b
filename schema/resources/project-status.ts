// The status of a Project: what the operator alone writes. Every field with its bound.
// It must not know how a status is computed. Source: 10-kubernetes §2.
import { z } from 'zod';
import { AS_SET, ATOMIC, ChangeToken, CommitId, counter, integer, keyedBy, text } from '../primitives.ts';
import { ConditionSchema } from './conditions.ts';
import { HARNESS_REASONS, MANIFEST_RUNTIMES } from './sandbox-fields.ts';

export const PROJECT_PHASES = ['Pending', 'Ready', 'Degraded', 'Suspended', 'Deleting'] as const;
export type ProjectPhase = (typeof PROJECT_PHASES)[number];
export const FEATURE_SOURCES = ['Project', 'Platform', 'Unavailable'] as const;
export type FeatureSource = (typeof FEATURE_SOURCES)[number];
/** Names of the feature flags, as status and REST have them. Source: A209. */
export const FEATURE_FLAGS = ['llm_gateway', 'pi_harness', 'config_releases', 'warm_sessions'] as const;
export type FeatureFlag = (typeof FEATURE_FLAGS)[number];
/** Why a model name of a Project is not valid. */
export const MODEL_PROBLEMS = ['UnknownModel', 'ModelDisabled', 'ProviderDisabled', 'NotAllowed'] as const;
export type ModelProblem = (typeof MODEL_PROBLEMS)[number];

const id64 = text(64);

export const ProjectStatusSchema = z.object({
  observedGeneration: counter().optional().describe('Generation that this status answers.'),
  observedSyncToken: ChangeToken.optional().describe('spec.syncToken that the last sync answered.'),
  phase: z
    .enum(PROJECT_PHASES)
    .optional()
    .describe('Summary for people: Pending, Ready, Degraded, Suspended or Deleting. Programs read conditions.'),
  repository: z
    .object({
      defaultBranch: text(200).optional().describe('Branch that is mirrored.'),
      commit: CommitId.optional().describe('Newest mirrored commit.'),
      shortCommit: text(12).optional().describe('First 12 digits of commit.'),
    })
    .optional()
    .describe('What is mirrored.'),
  manifest: z
    .object({
      path: text(255).describe('Path in the repository.'),
      version: integer(0, 1000).optional().describe('beeuni_version.'),
      valid: z.boolean().describe('Whether the manifest of the newest commit has no error.'),
      hash: id64.optional().describe('Hash of the manifest and agent files.'),
      runtime: z.enum(MANIFEST_RUNTIMES).optional().describe('runtime of the manifest.'),
      defaultAgent: text(128).optional().describe('default_agent of the manifest.'),
      agents: z.array(text(128)).max(64).meta(AS_SET).optional().describe('Enabled agents.'),
      errors: z
        .array(
          z.object({
            path: text(512).describe('File.'),
            line: integer(0, 10_000_000).optional().describe('Line, from 1.'),
            code: id64.describe('Kind of error.'),
            message: text(512).describe('What is wrong and what would be right.'),
          }),
        )
        .max(20)
        .meta(ATOMIC)
        .optional()
        .describe('The first errors.'),
    })
    .optional()
    .describe('The manifest of the newest commit.'),
  features: z
    .array(
      z.object({
        name: z.enum(FEATURE_FLAGS).describe('Flag.'),
        enabled: z.boolean().describe('Effective value.'),
        available: z.boolean().describe('Whether the installation offers the feature.'),
        source: z.enum(FEATURE_SOURCES).describe('What decided: Project, Platform or Unavailable.'),
      }),
    )
    .max(16)
    .meta(keyedBy('name'))
    .optional()
    .describe('Effective feature flags.'),
  harness: z
    .object({
      id: id64.describe('Harness that a session started now would run.'),
      reason: z.enum(HARNESS_REASONS).describe('Why.'),
    })
    .optional()
    .describe('What a session started now would run.'),
  models: z
    .object({
      default: text(256).optional().describe('Model of a session that says nothing.'),
      registryGeneration: counter().optional().describe('Generation of the provider registry that was asked.'),
      invalid: z
        .array(
          z.object({
            name: text(256).describe('Model name.'),
            code: z.enum(MODEL_PROBLEMS).describe('What is wrong with it.'),
            usedBy: text(253).optional().describe('Where it is named.'),
            suggestion: text(256).optional().describe('Nearest valid name.'),
          }),
        )
        .max(20)
        .meta(ATOMIC)
        .optional()
        .describe('Model names that cannot be used.'),
    })
    .optional()
    .describe('Models of the Project.'),
  release: z
    .object({
      current: id64.optional().describe('Release that sessions are given.'),
      short: text(12).optional().describe('First 12 characters of current.'),
      commit: CommitId.optional().describe('Commit of the release.'),
      previous: id64.optional().describe('Release before it.'),
      quarantined: z
        .array(z.object({ id: id64.describe('Release.'), reason: text(512).describe('Why it is no longer assigned.') }))
        .max(5)
        .meta(keyedBy('id'))
        .optional()
        .describe('Releases that failed in two sessions.'),
    })
    .optional()
    .describe('Configuration release.'),
  sessions: z
    .object({
      total: integer(0, 1_000_000).describe('Session objects.'),
      running: integer(0, 1_000_000).describe('Sessions with a sandbox.'),
      suspended: integer(0, 1_000_000).describe('Suspended sessions.'),
      failed: integer(0, 1_000_000).describe('Failed sessions.'),
    })
    .optional()
    .describe('Counts, written at most every 10 seconds.'),
  conditions: z
    .array(ConditionSchema)
    .max(16)
    .meta(keyedBy('type'))
    .optional()
    .describe('The truth about the Project, Ready first.'),
});

export type ProjectStatus = z.output<typeof ProjectStatusSchema>;
