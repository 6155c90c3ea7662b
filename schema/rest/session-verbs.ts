// What clients ask of a session's harness besides prompts. Each feature is present for every session; a harness that lacks
// it answers 501 `feature_not_supported` naming the capability, or 404 for a document. Turns go through the prompt inbox.
// Source: 20-control-plane §3, A62 to A67, A135, A136.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { HARNESS_REASONS } from '../resources/sandbox-fields.ts';
import {
  attachCommand,
  forkBody,
  forked,
  mcpServer,
  revertBody,
  runtimeConfig,
  slashCommand,
} from '../wire/runtime.ts';
import { objectParams } from './lists.ts';
import { promptView } from './prompts.ts';

const base = '/v1/namespaces/:namespace/sessions/:name';
const read = { kind: 'resource', resource: 'sessions', subresource: 'events', verb: 'get' } as const;
const send = { kind: 'resource', resource: 'sessions', subresource: 'prompts', verb: 'create' } as const;

/** Fields of every verb that is a turn. A thread other than `root` is a subagent's, which is read-only: 501. Source: A65. */
const turnFields = {
  messageId: z.string().min(1).max(128).optional(),
  threadId: z.string().min(1).max(128).optional(),
  agent: z.string().max(128).optional(),
  model: z.string().max(256).optional(),
};

/** `GET …/commands`. 503 `runtime_not_ready` while the sandbox starts, which the call asks for. */
export const listCommandsRoute = defineRoute({
  operationId: 'listCommands',
  listener: 'public',
  method: 'GET',
  path: `${base}/commands`,
  summary: 'List the slash commands of the project',
  auth: read,
  params: objectParams,
  responses: { 200: z.object({ items: z.array(slashCommand) }) },
});

/** `POST …/commands`: runs one as a turn; 400 `unknown_command`. */
export const runCommandRoute = defineRoute({
  operationId: 'runCommand',
  listener: 'public',
  method: 'POST',
  path: `${base}/commands`,
  summary: 'Run a slash command',
  auth: send,
  params: objectParams,
  body: z.object({
    name: z.string().min(1).max(128),
    arguments: z.string().max(65_536).default(''),
    ...turnFields,
  }),
  responses: { 200: promptView, 202: promptView },
});

/** `POST …/shell`: a shell command as a turn, without a model. */
export const runShellRoute = defineRoute({
  operationId: 'runShell',
  listener: 'public',
  method: 'POST',
  path: `${base}/shell`,
  summary: 'Run a shell command as a turn',
  auth: send,
  params: objectParams,
  body: z.object({ command: z.string().min(1).max(65_536), ...turnFields }),
  responses: { 200: promptView, 202: promptView },
});

/** `POST …/summarize`: compacts the conversation as a turn. */
export const summarizeSessionRoute = defineRoute({
  operationId: 'summarizeSession',
  listener: 'public',
  method: 'POST',
  path: `${base}/summarize`,
  summary: 'Compact the conversation',
  auth: send,
  params: objectParams,
  body: z.object(turnFields),
  responses: { 200: promptView, 202: promptView },
});

/** `POST …/revert`: back to before a message, with the files. 404 `message_not_found`, 409 `turn_running`. */
export const revertSessionRoute = defineRoute({
  operationId: 'revertSession',
  listener: 'public',
  method: 'POST',
  path: `${base}/revert`,
  summary: 'Go back to before a message',
  auth: send,
  params: objectParams,
  body: revertBody.extend({ threadId: turnFields.threadId }),
  responses: { 200: z.object({}) },
});

/** `POST …/unrevert`: takes the last rewind back, as long as no prompt followed it. 409 `turn_running`, `not_rewound`. */
export const unrevertSessionRoute = defineRoute({
  operationId: 'unrevertSession',
  listener: 'public',
  method: 'POST',
  path: `${base}/unrevert`,
  summary: 'Take back a rewind',
  auth: send,
  params: objectParams,
  body: z.object({}),
  responses: { 200: z.object({}) },
});

/** `POST …/fork`: goes on from before a message as another conversation of the session; files stay. */
export const forkSessionRoute = defineRoute({
  operationId: 'forkSession',
  listener: 'public',
  method: 'POST',
  path: `${base}/fork`,
  summary: 'Go on from before a message as another conversation',
  auth: send,
  params: objectParams,
  body: forkBody.extend({ threadId: turnFields.threadId }),
  responses: { 200: forked },
});

/** `GET …/mcp`. */
export const listMcpServersRoute = defineRoute({
  operationId: 'listMcpServers',
  listener: 'public',
  method: 'GET',
  path: `${base}/mcp`,
  summary: 'List the MCP servers of the harness',
  auth: read,
  params: objectParams,
  responses: { 200: z.object({ items: z.array(mcpServer) }) },
});

/** `GET …/attach`: the command that starts the harness's own client in a terminal of the sandbox. */
export const attachSessionRoute = defineRoute({
  operationId: 'attachSession',
  listener: 'public',
  method: 'GET',
  path: `${base}/attach`,
  summary: "How to start the harness's own terminal client",
  auth: { kind: 'resource', resource: 'sessions', subresource: 'terminal', verb: 'create' },
  params: objectParams,
  responses: { 200: attachCommand },
});

/** `GET …/runtime-config`: the configuration that the harness runs with, without secrets; 404 without the document. */
export const getRuntimeConfigRoute = defineRoute({
  operationId: 'getRuntimeConfig',
  listener: 'public',
  method: 'GET',
  path: `${base}/runtime-config`,
  summary: "Read the harness's configuration",
  auth: read,
  params: objectParams,
  responses: { 200: z.object({ config: runtimeConfig }) },
});

/** `GET …/harness`: what the session runs, and what its next start would run, with reasons. Source: J2. */
export const getSessionHarnessRoute = defineRoute({
  operationId: 'getSessionHarness',
  listener: 'public',
  method: 'GET',
  path: `${base}/harness`,
  summary: 'Which harness a session runs now and at its next start',
  auth: { kind: 'resource', resource: 'sessions', verb: 'get' },
  params: objectParams,
  responses: {
    200: z.object({
      now: z.object({ id: z.string(), reason: z.string().nullable(), version: z.string().nullable() }).nullable(),
      next: z.object({ id: z.string(), reason: z.enum(HARNESS_REASONS) }),
      changes: z.boolean().describe('the next start, restart or resume runs another harness'),
      message: z.string(),
      capabilities: z.array(z.string()).nullable().describe('of the newest report; null: there was none'),
      lost: z.array(z.string()).describe('what the session has now and the next harness is known not to have'),
    }),
  },
});
