// The event log's words: envelope, event types with their data, and the terminal event of a turn.
// Source: 20-control-plane §8, A139 to A142. Must not know how events are stored or sent.
import { z } from 'zod';
import { runSettings } from '../settings/run-settings.ts';

/** How a turn ended; Interrupted: the sandbox or the daemon died. Source: 10-kubernetes §3, status.lastTurn. */
export const turnOutcome = z.enum(['Succeeded', 'Failed', 'Aborted', 'Interrupted']);

/** Closed list of turn error codes. Source: A142. */
export const turnErrorCode = z.enum([
  'auth',
  'rate_limit',
  'credits',
  'context_length',
  'output_length',
  'aborted',
  'harness_died',
  'sandbox_lost',
  'unknown_model',
  'request_too_large',
  'feature_not_supported',
  'unknown',
]);

/** State of a tool part. Source: A140. */
export const toolState = z.object({
  status: z.enum(['pending', 'running', 'completed', 'error']),
  input: z.unknown().optional(),
  output: z.string().optional(),
  title: z.string().optional(),
  error: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  startedAt: z.iso.datetime().optional(),
  endedAt: z.iso.datetime().optional(),
});

/** One part of a message. Source: A139. */
export const messagePart = z.looseObject({
  id: z.string().max(128),
  messageId: z.string().max(128),
  type: z.enum([
    'text',
    'reasoning',
    'file',
    'tool',
    'step-start',
    'step-finish',
    'snapshot',
    'patch',
    'agent',
    'retry',
    'compaction',
    'subtask',
  ]),
  text: z.string().optional(),
  tool: z.string().max(128).optional(),
  callId: z.string().max(128).optional(),
  state: toolState.optional(),
});

const message = z.looseObject({ id: z.string().max(128), role: z.enum(['user', 'assistant']) });

/** Data of every event type. Clients ignore types that they do not know. Source: A141, 20-control-plane §8. */
export const EVENT_DATA = {
  'turn.started': z.object({
    promptId: z.string(),
    messageId: z.string(),
    agent: z.string().nullable(),
    model: z.string().nullable(),
    harness: z.string(),
  }),
  'turn.ended': z.object({
    promptId: z.string().nullable(),
    outcome: turnOutcome,
    code: turnErrorCode.nullable(),
    message: z.string().max(1024).nullable(),
    summary: z.string().max(4096).nullable(),
    commit: z.string().max(64).nullable(),
  }),
  'run.settings.pinned': runSettings,
  'prompt.steered': z.object({ promptId: z.string(), messageId: z.string() }),
  'harness.selected': z.object({ id: z.string(), version: z.string().nullable() }),
  'message.updated': z.object({ message }),
  'message.removed': z.object({ messageId: z.string() }),
  'message.part.updated': z.object({ part: messagePart }),
  'message.part.removed': z.object({ messageId: z.string(), partId: z.string() }),
  'message.part.delta': z.object({ messageId: z.string(), partId: z.string(), field: z.string(), delta: z.string() }),
  'session.status': z.object({
    status: z.enum(['idle', 'busy', 'retry']),
    attempt: z.int().optional(),
    nextAt: z.iso.datetime().optional(),
    message: z.string().optional(),
  }),
  'session.idle': z.object({}),
  'session.error': z.object({ code: turnErrorCode, message: z.string().max(1024) }),
  'session.compacted': z.object({ auto: z.boolean() }),
  'agent.repoint': z.object({ from: z.string(), to: z.string(), applied: z.boolean(), reason: z.string() }),
  'session.reverted': z.object({ messageId: z.string() }),
  'session.unreverted': z.object({}),
  'session.forked': z.object({ messageId: z.string().nullable(), threadId: z.string() }),
  'permission.asked': z.looseObject({ id: z.string() }),
  'permission.replied': z.looseObject({ id: z.string(), reply: z.enum(['once', 'always', 'reject']) }),
  'question.asked': z.looseObject({ id: z.string() }),
  'question.replied': z.looseObject({ id: z.string() }),
  'question.rejected': z.looseObject({ id: z.string() }),
  'todo.updated': z.looseObject({}),
  'tool.terminal': z.object({
    callId: z.string(),
    tool: z.string(),
    outcome: z.enum(['completed', 'error', 'aborted']),
  }),
  'effect.uncertain': z.object({ callId: z.string(), tool: z.string() }),
  'budget.reached': z.object({
    scope: z.enum(['session', 'project_day', 'project_month']),
    period: z.string().max(16).describe('UTC day or month; empty for the budget of a session'),
    limitMicroUSD: z.int().min(0),
    spentMicroUSD: z.int().min(0),
    onReached: z.enum(['Fail', 'Suspend']),
  }),
  'budget.raised': z.object({ scope: z.literal('session'), limitMicroUSD: z.int().min(0).nullable() }),
  'workspace.checked_out': z.object({ branch: z.string(), commit: z.string() }),
  'workspace.committed': z.object({ branch: z.string(), commit: z.string(), subject: z.string() }),
  'workspace.pushed': z.object({ branch: z.string(), commit: z.string() }),
  'workspace.push_failed': z.object({ branch: z.string(), message: z.string() }),
  'workspace.commits_aside': z.object({
    branch: z.string(),
    commit: z.string(),
    commits: z.int().min(1),
    keptAs: z.string(),
  }),
  'workspace.restored': z.object({ branch: z.string(), commit: z.string(), filesKept: z.boolean() }),
} as const satisfies Record<string, z.ZodType>;

/** One type of the log. */
export type EventType = keyof typeof EVENT_DATA;
/** Data of one event type. */
export type EventData<T extends EventType> = z.output<(typeof EVENT_DATA)[T]>;
/** A typed event before it is numbered. */
export type TypedEvent = { [T in EventType]: Readonly<{ type: T; data: EventData<T> }> }[EventType];

/** One event as the daemon sends it: `n` is the daemon's own dense counter of this generation, from 1. */
export const daemonEvent = z.object({
  n: z.int().min(1),
  id: z.string().max(64),
  type: z.string().max(64),
  at: z.iso.datetime(),
  threadId: z.string().max(128),
  turnId: z.string().max(64).nullable(),
  hidden: z.boolean().default(false),
  causedBy: z.string().max(64).nullable().default(null),
  data: z.record(z.string(), z.unknown()),
});

/** One stored event as clients read it. `seq` is dense per session uid, from 1. Source: 20-control-plane §8. */
export const storedEvent = z.object({
  id: z.string(),
  seq: z.int().min(1),
  sessionUid: z.string(),
  runId: z.string().nullable(),
  threadId: z.string(),
  turnId: z.string().nullable(),
  type: z.string(),
  at: z.iso.datetime(),
  hidden: z.boolean(),
  causedBy: z.string().nullable(),
  data: z.record(z.string(), z.unknown()),
});

/** See daemonEvent. */
export type DaemonEvent = z.output<typeof daemonEvent>;
/** See storedEvent. */
export type StoredEvent = z.output<typeof storedEvent>;
/** See turnOutcome. */
export type TurnOutcome = z.output<typeof turnOutcome>;
/** See turnErrorCode. */
export type TurnErrorCode = z.output<typeof turnErrorCode>;
/** See messagePart. */
export type MessagePart = z.output<typeof messagePart>;

/** Largest event kept inline. Units: bytes of JSON. Source: 20-control-plane §8. */
export const MAX_EVENT_BYTES = 262_144;
