// What happened in a session, to read at any time, also while it sleeps: the conversation, its subagents and plan, runs and
// their events, and search. Source: 20-control-plane §3, §8; A125, A139, A148.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { messagePart, storedEvent, turnErrorCode, turnOutcome } from '../events/envelope.ts';
import { childThread, todoEntry } from '../wire/runtime.ts';
import { objectParams, pageOf, pageQuery } from './lists.ts';

const auth = { kind: 'resource', resource: 'sessions', subresource: 'events', verb: 'get' } as const;
const base = '/v1/namespaces/:namespace/sessions/:name';
const hidden = z.enum(['true', 'false']).default('false');

/** One message with its parts. `reverted`: the conversation is rewound to before it. */
export const messageView = z.object({
  message: z.looseObject({ id: z.string(), role: z.string() }),
  threadId: z.string(),
  turnId: z.string().nullable(),
  reverted: z.boolean(),
  parts: z.array(messagePart),
});

/** A page of the conversation, oldest message first. `seq`: the page holds what the log holds up to there. */
export const messagePage = z.object({
  items: z.array(messageView),
  cursor: z.string().nullable().describe('leads to older messages; null: the first message is on this page'),
  seq: z.int().min(0),
});

/** `GET …/messages`: the newest page first; `thread` is `root` or a subagent's. Pages end at 4 MiB too. */
export const listMessagesRoute = defineRoute({
  operationId: 'listMessages',
  listener: 'public',
  method: 'GET',
  path: `${base}/messages`,
  summary: 'Read the conversation',
  auth,
  params: objectParams,
  query: pageQuery.extend({
    limit: z.coerce.number().int().min(1).max(200).default(20),
    thread: z.string().min(1).max(128).default('root'),
    hidden,
  }),
  responses: { 200: messagePage },
});

/** `GET …/children`: conversations of subagents, and those that a fork left behind. 501 without `session.subagents`. */
export const listChildrenRoute = defineRoute({
  operationId: 'listChildren',
  listener: 'public',
  method: 'GET',
  path: `${base}/children`,
  summary: 'List the conversations below a session',
  auth,
  params: objectParams,
  responses: { 200: z.object({ items: z.array(childThread) }) },
});

/** `GET …/todo`: the plan of the agent; a subagent has none. 501 without `session.todo`. */
export const getTodoRoute = defineRoute({
  operationId: 'getTodo',
  listener: 'public',
  method: 'GET',
  path: `${base}/todo`,
  summary: "Read the agent's plan",
  auth,
  params: objectParams,
  query: z.object({ thread: z.string().min(1).max(128).default('root') }),
  responses: { 200: z.object({ todos: z.array(todoEntry) }) },
});

/** One place that a search found. `snippet` is plain text. */
export const searchHit = z.object({
  messageId: z.string(),
  threadId: z.string(),
  turnId: z.string().nullable(),
  role: z.string(),
  snippet: z.string(),
});

/** `GET …/search?q=`: newest first, in visible text only; words, "phrases", -without and or are understood. */
export const searchSessionRoute = defineRoute({
  operationId: 'searchSession',
  listener: 'public',
  method: 'GET',
  path: `${base}/search`,
  summary: 'Search the visible text of a session',
  auth,
  params: objectParams,
  query: z.object({
    q: z.string().trim().min(1).max(256),
    limit: z.coerce.number().int().min(1).max(50).default(20),
  }),
  responses: { 200: z.object({ items: z.array(searchHit) }) },
});

/** One run: one attempt of a prompt. `final`: the prompt does not run again. */
export const runView = z.object({
  id: z.string(),
  promptId: z.string(),
  attempt: z.int().min(1),
  takenAt: z.iso.datetime(),
  startedAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
  outcome: turnOutcome.nullable(),
  code: turnErrorCode.nullable(),
  message: z.string().nullable(),
  summary: z.string().nullable(),
  commit: z.string().nullable(),
  final: z.boolean(),
});

/** `GET …/runs`: newest first. */
export const listRunsRoute = defineRoute({
  operationId: 'listRuns',
  listener: 'public',
  method: 'GET',
  path: `${base}/runs`,
  summary: 'List the runs of a session',
  auth,
  params: objectParams,
  query: pageQuery,
  responses: { 200: pageOf(runView) },
});

/** `GET …/runs/{id}/events`: in order. 404 `not_found` for a run that the session does not have. */
export const listRunEventsRoute = defineRoute({
  operationId: 'listRunEvents',
  listener: 'public',
  method: 'GET',
  path: `${base}/runs/:id/events`,
  summary: 'Read the events of one run',
  auth,
  params: objectParams.extend({ id: z.string().min(1).max(64) }),
  query: pageQuery.extend({ hidden }),
  responses: { 200: pageOf(storedEvent) },
});

/** See messageView. */
export type MessageView = z.output<typeof messageView>;
/** See runView. */
export type RunView = z.output<typeof runView>;
