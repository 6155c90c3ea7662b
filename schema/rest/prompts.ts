// Prompts, turns and the event stream of a session. Source: 20-control-plane §3, §8, §9; A145, A154.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { storedEvent, turnOutcome } from '../events/envelope.ts';
import { promptPart } from '../wire/turns.ts';
import { objectParams, pageOf, pageQuery } from './lists.ts';

/** One prompt of the inbox. */
export const promptView = z.object({
  id: z.string(),
  messageId: z.string(),
  state: z.enum(['queued', 'running', 'ended', 'withdrawn']),
  origin: z.enum(['spec', 'rest']),
  turnId: z.string().nullable(),
  outcome: turnOutcome.nullable(),
  delivery: z.enum(['queue', 'interrupt', 'steer']),
  deliveryReason: z
    .enum(['unsupported', 'not_prompter', 'turn_ended'])
    .nullable()
    .describe('why a prompt that should have joined the running turn waits in the queue'),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
  deduplicated: z.boolean(),
  note: z
    .string()
    .max(512)
    .nullable()
    .describe('why it waits, may get no answer, or was taken in another way than asked'),
});

/**
 * `POST …/prompts`: stored before the answer. `messageId` is an idempotency key: a repeated one is the same prompt and
 * answers 200 with `deduplicated: true`, or 422 `idempotency_key_reused` when its content is another one. 409 for a
 * failed or finished session.
 */
export const createPromptRoute = defineRoute({
  operationId: 'createPrompt',
  listener: 'public',
  method: 'POST',
  path: '/v1/namespaces/:namespace/sessions/:name/prompts',
  summary: 'Send a prompt',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'prompts', verb: 'create' },
  bodyLimitBytes: 2_097_152,
  params: objectParams,
  body: z.object({
    messageId: z.string().min(1).max(128).optional(),
    delivery: z.enum(['queue', 'interrupt', 'steer']).default('queue'),
    parts: z.array(promptPart).min(1).max(64),
    agent: z.string().max(128).optional(),
    model: z.string().max(256).optional(),
    threadId: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe("root, or absent; a subagent's conversation is read-only: 501"),
  }),
  responses: { 200: promptView, 202: promptView },
});

/** `GET …/prompts`: newest first. */
export const listPromptsRoute = defineRoute({
  operationId: 'listPrompts',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/prompts',
  summary: 'List the prompts of a session',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'prompts', verb: 'list' },
  params: objectParams,
  query: pageQuery,
  responses: { 200: pageOf(promptView) },
});

/** `GET …/prompts/{id}`. */
export const getPromptRoute = defineRoute({
  operationId: 'getPrompt',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/prompts/:id',
  summary: 'Read a prompt',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'prompts', verb: 'get' },
  params: objectParams.extend({ id: z.string().max(64) }),
  responses: { 200: promptView },
});

/** `DELETE …/prompts/{id}`: withdraws a queued prompt; 409 `prompt_started` later. */
export const deletePromptRoute = defineRoute({
  operationId: 'deletePrompt',
  listener: 'public',
  method: 'DELETE',
  path: '/v1/namespaces/:namespace/sessions/:name/prompts/:id',
  summary: 'Withdraw a queued prompt',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'prompts', verb: 'delete' },
  params: objectParams.extend({ id: z.string().max(64) }),
  responses: { 204: z.null() },
});

/** `POST …/abort`: ends the running turn; 409 `no_active_turn` when idle. */
export const abortRoute = defineRoute({
  operationId: 'abortSessionTurn',
  listener: 'public',
  method: 'POST',
  path: '/v1/namespaces/:namespace/sessions/:name/abort',
  summary: 'Abort the running turn',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'prompts', verb: 'create' },
  params: objectParams,
  body: z.object({}),
  responses: { 202: z.object({ turnId: z.string() }) },
});

/** Data of the `hello` frame that opens every stream, and of `reset`. */
export const streamPosition = z.object({ sessionUid: z.string(), firstSeq: z.int().min(0), headSeq: z.int().min(0) });

/**
 * `GET …/events`: SSE. `id:` is the seq, `event:` the type, `data:` the stored event. Opens with `hello` (see
 * streamPosition); `Last-Event-ID` or `since` resumes after that seq; a position that is gone gives `reset`.
 * Heartbeat comment every 15 s. `follow=false` ends at the head. `error` is the last event of a reader who may no longer
 * read: its data is the body of the answer that a new call would get.
 */
export const streamEventsRoute = defineRoute({
  operationId: 'streamEvents',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/events',
  summary: 'Read and follow the event log of a session',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'events', verb: 'get' },
  params: objectParams,
  query: z.object({
    since: z.coerce.number().int().min(0).optional(),
    follow: z.enum(['true', 'false']).default('true'),
    hidden: z.enum(['true', 'false']).default('false'),
  }),
  stream: 'sse',
  responses: { 200: storedEvent },
});

/**
 * `GET …/events/{seq}`: one event with all its data. Streams carry `{"blob": {"bytes", "sha256"}}` in place of data above
 * 256 KiB; here it is whole. 404 `not_found` for an event that is pruned or not there yet.
 */
export const getEventRoute = defineRoute({
  operationId: 'getEvent',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/events/:seq',
  summary: 'Read one event of a session',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'events', verb: 'get' },
  params: objectParams.extend({ seq: z.coerce.number().int().min(1) }),
  responses: { 200: storedEvent },
});

/** See promptView. */
export type PromptView = z.output<typeof promptView>;
