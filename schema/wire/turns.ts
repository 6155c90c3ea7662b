// Turns between control plane and daemon: the next prompt, events, and the calls to port 8000.
// The inbox row in the control plane is the truth; a nudge only saves time.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { daemonEvent } from '../events/envelope.ts';
import { processLimits, runSettings } from '../settings/run-settings.ts';

/** One part of a prompt. */
export const promptPart = z.object({ type: z.literal('text'), text: z.string().min(1).max(1_048_576) });

/**
 * One part of a turn. Beside text a turn may be one thing that is no prompt: a slash command, a shell command or a
 * compaction. They go through the inbox too, so they are durable, in order and run exactly once. Source: A47, A62, A135.
 */
export const turnPart = z.discriminatedUnion('type', [
  promptPart,
  z.object({ type: z.literal('command'), name: z.string().min(1).max(128), arguments: z.string().max(65_536) }),
  z.object({ type: z.literal('shell'), command: z.string().min(1).max(65_536) }),
  z.object({ type: z.literal('compact') }),
]);

/** One prompt as a turn. `turnId` is derived from the prompt and its attempt, so that a resend is the same turn. */
export const turn = z.object({
  turnId: z.string().max(64),
  promptId: z.string().max(64),
  messageId: z.string().max(128),
  parts: z.array(turnPart).min(1).max(64),
  agent: z.string().max(128).nullable(),
  model: z.string().max(256).nullable(),
  settings: runSettings.optional().describe('pinned for this run; without it the compiled values count'),
  limits: processLimits.optional().describe('as they are now; they may differ when the turn is given out again'),
});

/**
 * `POST /sandbox/v1/turns/next`: takes the oldest waiting prompt, marks it running for this generation and gives it
 * back; the prompt that this generation already runs is given back again. `turn: null` when nothing waits.
 */
export const nextTurnRoute = defineRoute({
  operationId: 'takeNextTurn',
  listener: 'sandbox',
  method: 'POST',
  path: '/sandbox/v1/turns/next',
  summary: 'Take the next prompt of the session',
  auth: { kind: 'sandbox' },
  body: z.object({}),
  responses: { 200: z.object({ turn: turn.nullable() }) },
});

/** Largest append: number of events. */
export const MAX_APPEND_EVENTS = 512;

/**
 * `POST /sandbox/v1/events`: appends a batch. `events[].n` continues this generation's counter; a repeated `n` is a
 * no-op, a gap is 400. `turn.ended` also ends the prompt of its turn, in the same transaction; a second terminal event
 * of one turn is a no-op. Source: D17, 20-control-plane §8.
 */
export const appendEventsRoute = defineRoute({
  operationId: 'appendEvents',
  listener: 'sandbox',
  method: 'POST',
  path: '/sandbox/v1/events',
  summary: 'Append events of the session',
  auth: { kind: 'sandbox' },
  bodyLimitBytes: 4_194_304,
  body: z.object({ events: z.array(daemonEvent).min(1).max(MAX_APPEND_EVENTS) }),
  responses: { 200: z.object({ acknowledgedN: z.int().min(0), headSeq: z.int().min(0) }) },
});

/** `POST /sandbox/v1/bye`: the daemon's last word before it exits. Source: K17. */
export const byeRoute = defineRoute({
  operationId: 'bye',
  listener: 'sandbox',
  method: 'POST',
  path: '/sandbox/v1/bye',
  summary: 'Say that this daemon ends',
  auth: { kind: 'sandbox' },
  body: z.object({ reason: z.string().max(256) }),
  responses: { 204: z.null() },
});

/** `POST /beeuni/nudge` on port 8000: something waits at the control plane. */
export const nudgeRoute = defineRoute({
  operationId: 'nudge',
  listener: 'daemon',
  method: 'POST',
  path: '/beeuni/nudge',
  summary: 'Look for waiting prompts now',
  auth: { kind: 'control-plane' },
  body: z.object({ reason: z.enum(['prompt', 'config']) }),
  responses: { 202: z.object({}) },
});

/** `POST /beeuni/abort` on port 8000: ends the running turn. 409 `no_active_turn` when idle or another turn runs. */
export const abortTurnRoute = defineRoute({
  operationId: 'abortTurn',
  listener: 'daemon',
  method: 'POST',
  path: '/beeuni/abort',
  summary: 'Abort the running turn',
  auth: { kind: 'control-plane' },
  body: z.object({ turnId: z.string().max(64).optional() }),
  responses: { 202: z.object({ turnId: z.string() }) },
});

/** `POST /beeuni/drain` on port 8000: take no more prompts; `wait` lets the turn end, `abort` ends it now. */
export const drainRoute = defineRoute({
  operationId: 'drain',
  listener: 'daemon',
  method: 'POST',
  path: '/beeuni/drain',
  summary: 'Stop taking prompts and end the running turn',
  auth: { kind: 'control-plane' },
  body: z.object({ turn: z.enum(['wait', 'abort']), deadlineMs: z.int().min(0).max(600_000) }),
  responses: { 202: z.object({ idle: z.boolean() }) },
});

/** `POST /beeuni/env` on port 8000: the whole set of granted secrets, replacing the last one. Source: A180, D10. */
export const pushEnvRoute = defineRoute({
  operationId: 'pushEnv',
  listener: 'daemon',
  method: 'POST',
  path: '/beeuni/env',
  summary: 'Replace the granted environment',
  auth: { kind: 'control-plane' },
  body: z.object({ revision: z.int().min(0), env: z.record(z.string(), z.string()) }),
  responses: { 200: z.object({ revision: z.int().min(0) }) },
});

/** `GET /beeuni/logs` on port 8000: the newest lines. Source: A200. */
export const logsRoute = defineRoute({
  operationId: 'getLogs',
  listener: 'daemon',
  method: 'GET',
  path: '/beeuni/logs',
  summary: 'The newest log lines of daemon and harness',
  auth: { kind: 'control-plane' },
  query: z.object({
    source: z.enum(['daemon', 'harness', 'all']).default('all'),
    tail: z.coerce.number().int().min(1).max(5000).default(500),
  }),
  responses: { 200: z.object({ lines: z.array(z.string()) }) },
});

/** See turnPart. */
export type TurnPart = z.output<typeof turnPart>;
/** See turn. */
export type Turn = z.output<typeof turn>;
