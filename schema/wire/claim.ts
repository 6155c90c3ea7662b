// The claim: how a daemon becomes the one daemon of its session. Source: D6, D7, 10-kubernetes §8.
// Must not know who serves or calls it.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { agentVision } from '../settings/agent-policy.ts';
import { MODEL_ROLES } from '../settings/roles.ts';
import { processLimits } from '../settings/run-settings.ts';

/** One model as a harness needs to know it. Sizes in tokens. */
export const claimedModel = z.object({
  name: z.string().max(256).describe('provider/model'),
  contextWindowTokens: z.int().min(1).max(100_000_000),
  maxOutputTokens: z.int().min(1).max(100_000_000),
  input: z.array(z.enum(['text', 'image'])),
  reasoning: z.boolean(),
  variants: z
    .array(z.string().max(32))
    .max(16)
    .optional()
    .describe('its reasoning tiers; absent: those of the harness'),
});

/** Rule of one permission key: an action, or pattern to action. Source: A101. */
export const permissionRule = z.union([
  z.enum(['ask', 'allow', 'deny']),
  z.record(z.string(), z.enum(['ask', 'allow', 'deny'])),
]);

/** One agent after compilation of manifest and agent file: known keys only. Source: A39, A99, A103. */
export const compiledAgent = z.object({
  name: z.string().max(128),
  description: z.string().optional(),
  mode: z.enum(['primary', 'subagent', 'all']),
  model: z.string().max(256).optional(),
  variant: z.string().optional(),
  temperature: z.number().optional(),
  topP: z.number().optional(),
  steps: z.int().min(1).optional(),
  options: z.record(z.string(), z.json()).optional().describe('provider options; pi ignores them'),
  prompt: z.string(),
  permission: z.union([z.enum(['ask', 'allow', 'deny']), z.record(z.string(), permissionRule)]).optional(),
  tools: z.union([z.enum(['all', 'none']), z.array(z.string())]),
  skills: z.union([z.enum(['all', 'none']), z.array(z.string())]),
  hidden: z.boolean().optional(),
  vision: agentVision.optional().describe('absent: pixels, without limit'),
});

/** A module of the repository that is a tool. Source: A94. */
export const projectTool = z.object({ name: z.string().max(64), path: z.string().max(255) });

/** Folder of each harness that the manifest names; null is the default place. Source: A69, A70. */
export const configDirs = z.object({ opencode: z.string().max(255).nullable(), pi: z.string().max(255).nullable() });

const patterns = z.array(z.string().max(255)).max(64).optional();

/** A package of the harness pi: an exact pin or a path `./…`, and patterns of what loads. Source: A72, A74, A75. */
export const claimedPackage = z.object({
  source: z.string().max(255),
  extensions: patterns,
  skills: patterns,
  prompts: patterns,
});

/** The model that does a role's job; null when it is off. Source: 40-settings B2, B4. */
export const claimedRole = z.object({
  role: z.enum(MODEL_ROLES),
  model: z.string().max(256).nullable(),
  reason: z.string().max(1024),
});

/** Body of the claim. The pod's own name and uid come from its token, never from here. */
export const claimRequest = z.object({
  daemonVersion: z.string().max(64),
  harness: z.string().max(64).optional().describe('BEEUNI_HARNESS of the pod; absent in a warm pod'),
  adapters: z.array(z.string().max(64)).max(16).describe('harness ids that this image has an adapter for'),
});

/** All that a daemon needs to serve its session. Held in memory only; nothing of it is in the pod spec. Source: A202. */
export const claimAnswer = z.object({
  state: z.literal('claimed'),
  session: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  project: z.object({ name: z.string(), uid: z.string() }),
  generation: z.int().min(1),
  credential: z.string().describe('session credential for the sandbox listener'),
  daemonCredential: z.string().describe('what the control plane presents on port 8000'),
  harness: z.string(),
  branch: z.string(),
  baseBranch: z.string(),
  baseCommit: z.string().describe('commit of the base branch that configuration was read from'),
  repository: z.string().max(1024).nullable().default(null).describe('URL of the repository, for people'),
  gitPath: z.string().describe('path of the git proxy on the sandbox listener'),
  author: z.object({ name: z.string(), email: z.string() }),
  agent: z.string().nullable(),
  agents: z.array(compiledAgent).max(64),
  beeuniTools: z.array(z.string().max(64)).max(64).optional().describe('tools of Beeuni that are loaded; absent: all'),
  projectTools: z
    .array(projectTool)
    .max(64)
    .default([])
    .describe('tools of the project, as modules of the base commit'),
  configDirs: configDirs.default({ opencode: null, pi: null }),
  piPackages: z
    .array(claimedPackage)
    .max(40)
    .default([])
    .describe("packages of the harness pi for the session's agent"),
  model: claimedModel.nullable().describe('null: no model could be resolved; turns fail with unknown_model'),
  models: z.array(claimedModel).max(64),
  gatewayPath: z.string().describe('path prefix of the model gateway on the sandbox listener'),
  maxModelRequestBytes: z.int().min(0),
  limits: processLimits.optional().describe('image caps and time limits; without them the compiled values count'),
  roles: z.array(claimedRole).max(16).default([]).describe('the model of each role for this session'),
  env: z.record(z.string(), z.string()).describe('granted project secrets'),
  envRevision: z.int().min(0),
  headSeq: z.int().min(0),
  previous: z
    .object({ generation: z.int().min(0), acknowledgedN: z.int().min(0) })
    .nullable()
    .default(null)
    .describe('the generation before this one and its last stored event: what lies beyond may be sent again'),
  unattended: z.boolean(),
});

/** The pod has no session yet: ask again, the server holds the call for up to 25 s. */
export const claimWait = z.object({ state: z.literal('wait'), reason: z.enum(['not_assigned', 'project_not_synced']) });

/** `POST /sandbox/v1/claim`. Errors: 401 unauthenticated, 409 superseded or harness_mismatch, 501 harness_not_available. */
export const claimRoute = defineRoute({
  operationId: 'claim',
  listener: 'sandbox',
  method: 'POST',
  path: '/sandbox/v1/claim',
  summary: 'Bind the calling pod to its session',
  auth: { kind: 'pod' },
  body: claimRequest,
  responses: { 200: claimAnswer, 202: claimWait },
});

/** See claimAnswer. */
export type ClaimAnswer = z.output<typeof claimAnswer>;
/** See claimRequest. */
export type ClaimRequest = z.output<typeof claimRequest>;
/** See compiledAgent. */
export type CompiledAgent = z.output<typeof compiledAgent>;
/** See projectTool. */
export type ClaimedProjectTool = z.output<typeof projectTool>;
/** See configDirs. */
export type ConfigDirs = z.output<typeof configDirs>;
/** See claimedPackage. */
export type ClaimedPackage = z.output<typeof claimedPackage>;
/** See claimedRole. */
export type ClaimedRole = z.output<typeof claimedRole>;
/** See claimedModel. */
export type ClaimedModel = z.output<typeof claimedModel>;
