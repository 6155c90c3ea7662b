// Policies of agents, and the answer to "why does this project do that": flags, model, agent, harness and policies with
// their layers. Source: 40-settings B.2, D19. Must not know how any of it is decided.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { nullableSwitch } from '../primitives.ts';
import { FEATURE_FLAGS } from '../resources/project.ts';
import { AGENT_POLICY_FIELDS, agentPolicy, MAX_KEEP_IMAGES, VISION_MODES } from '../settings/agent-policy.ts';
import { objectParams } from './lists.ts';

const agentParams = objectParams.extend({ agent: z.string().min(1).max(128) });

/** The policy of an agent as it counts; `saved` names the fields that somebody saved. */
export const agentPolicyView = agentPolicy.extend({
  agent: z.string(),
  revision: z.int().min(0).describe('number of changes so far; the ETag is this number in quotes'),
  mode: z.enum(VISION_MODES),
  saved: z.array(z.enum(AGENT_POLICY_FIELDS)),
});

/** A change: an absent field keeps, null resets. Source: B7, B10. */
export const agentPolicyChange = z.object({
  vision: nullableSwitch.optional(),
  vision_describe: nullableSwitch.optional(),
  vision_keep_images: z.int().min(0).max(MAX_KEEP_IMAGES).nullable().optional(),
});

/** `GET P/agents/{agent}/policy`. Errors: 400 `unknown_agent`. */
export const getAgentPolicyRoute = defineRoute({
  operationId: 'getAgentPolicy',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/projects/:name/agents/:agent/policy',
  summary: 'Read the image policy of an agent',
  auth: { kind: 'resource', resource: 'projects', verb: 'get' },
  params: agentParams,
  responses: { 200: agentPolicyView },
  etag: 'revision',
});

/**
 * `PUT P/agents/{agent}/policy`: counts from the next start of a session. Errors: 400 `unknown_agent`, `invalid_setting` for
 * a limit of screenshots without pixels; 412 `precondition_failed` with the last state in `details.current`.
 */
export const putAgentPolicyRoute = defineRoute({
  operationId: 'putAgentPolicy',
  listener: 'public',
  method: 'PUT',
  path: '/v1/namespaces/:namespace/projects/:name/agents/:agent/policy',
  summary: 'Change the image policy of an agent',
  auth: { kind: 'resource', resource: 'projects', verb: 'patch' },
  params: agentParams,
  body: agentPolicyChange,
  responses: { 200: agentPolicyView },
  etag: 'revision',
});

const decided = <T extends z.ZodType>(value: T) =>
  z.object({ value, layer: z.string(), overrode: z.array(z.object({ layer: z.string(), value })) });

/**
 * `GET P/effective`: null where nothing decides, because the project was not synced or no model is registered. `problems` is
 * what the project asks for and does not get, with the place where it asks.
 */
export const getProjectEffectiveRoute = defineRoute({
  operationId: 'getProjectEffective',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/projects/:name/effective',
  summary: 'What a session started now would get, and which layer decided',
  auth: { kind: 'resource', resource: 'projects', verb: 'get' },
  params: objectParams,
  responses: {
    200: z.object({
      flags: z.array(decided(z.boolean()).extend({ name: z.enum(FEATURE_FLAGS), available: z.boolean() })),
      harness: decided(z.string()),
      agent: decided(z.string()).nullable(),
      model: decided(z.string()).nullable(),
      policies: z.array(
        decided(z.union([z.boolean(), z.int()])).extend({ agent: z.string(), name: z.enum(AGENT_POLICY_FIELDS) }),
      ),
      problems: z.array(z.object({ name: z.string(), message: z.string() })),
    }),
  },
});

/** See agentPolicyView. */
export type AgentPolicyView = z.output<typeof agentPolicyView>;
/** See agentPolicyChange. */
export type AgentPolicyChange = z.output<typeof agentPolicyChange>;
/** Body of `GET P/effective`. */
export type ProjectEffective = z.output<(typeof getProjectEffectiveRoute)['responses'][200]>;
