// Pseudo terminals of a sandbox, over a WebSocket that carries two kinds of frames. Binary frames are what the terminal reads and
// writes, as it is. Text frames are JSON: `resize` from the client; `attached` first and `exit` last to it.
// Source: A201, 20-control-plane §3.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';

/** What is sent again to whoever attaches. Units: bytes. Source: A201. */
export const SCROLLBACK_BYTES = 65_536;
/** How long a terminal without viewer counts as used. Units: milliseconds. Source: A201. */
export const ABANDONED_AFTER_MS = 1_800_000;
/** Largest frame from a client. Units: bytes. */
export const MAX_TERMINAL_FRAME_BYTES = 65_536;
/** Terminals that run at once in one sandbox, and ended ones that are remembered. */
export const MAX_TERMINALS = 16;

const side = z.coerce.number().int().min(1).max(1_000);

/** One terminal. `abandoned`: nobody has looked at it for 30 minutes, so it stands in no way. Source: A201. */
export const terminalView = z.object({
  id: z.string(),
  title: z.string(),
  command: z.string(),
  args: z.array(z.string()),
  cwd: z.string(),
  status: z.enum(['running', 'exited']),
  pid: z.int().nullable(),
  exitCode: z.int().nullable(),
  attachedViewers: z.int().min(0),
  idleMs: z.int().min(0),
  abandoned: z.boolean(),
});

/** Which terminal, how large, and what runs in a new one: a shell, or one command line of it. */
export const terminalQuery = z.object({
  id: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be 1 to 63 lower-case letters, digits and dashes')
    .optional()
    .describe('attaches to this terminal, or makes it; absent: a new one'),
  cols: side.default(80),
  rows: side.default(24),
  command: z.string().min(1).max(8_192).optional().describe('a command line for the shell; absent: a login shell'),
  client: z
    .enum(['true', 'false'])
    .default('false')
    .describe("true: the harness's own terminal client in place of a shell; 501 when it has none"),
});

/** A text frame from a client. */
export const terminalInput = z.object({
  type: z.literal('resize'),
  cols: z.int().min(1).max(1_000),
  rows: z.int().min(1).max(1_000),
});

/** A text frame to a client. After `exit` the connection is closed. */
export const terminalNotice = z.discriminatedUnion('type', [
  z.object({ type: z.literal('attached'), terminal: terminalView }),
  z.object({ type: z.literal('exit'), exitCode: z.int().nullable() }),
]);

/** Params of one terminal on port 8000. */
const terminalParams = z.object({ id: z.string().max(63) });

/**
 * `GET /beeuni/terminal` on port 8000, as a WebSocket: attach or create. A terminal that has ended is reported and never made again.
 * Errors before the upgrade: 429 `too_many_terminals`, 503 `runtime_not_ready` before the checkout.
 */
export const attachTerminalRoute = defineRoute({
  operationId: 'attachTerminal',
  listener: 'daemon',
  method: 'GET',
  path: '/beeuni/terminal',
  summary: 'Attach to a terminal, or make one',
  auth: { kind: 'control-plane' },
  query: terminalQuery,
  stream: 'websocket',
  responses: { 200: terminalNotice },
});

/** `GET /beeuni/terminals` on port 8000. */
export const listTerminalsRoute = defineRoute({
  operationId: 'listTerminals',
  listener: 'daemon',
  method: 'GET',
  path: '/beeuni/terminals',
  summary: 'The terminals of the sandbox',
  auth: { kind: 'control-plane' },
  responses: { 200: z.object({ terminals: z.array(terminalView).max(64) }) },
});

/** `DELETE /beeuni/terminals/{id}` on port 8000: ends it and forgets it. 404 `not_found`. */
export const endTerminalRoute = defineRoute({
  operationId: 'endTerminal',
  listener: 'daemon',
  method: 'DELETE',
  path: '/beeuni/terminals/:id',
  summary: 'End a terminal',
  auth: { kind: 'control-plane' },
  params: terminalParams,
  responses: { 204: z.null() },
});

/** See terminalView. */
export type TerminalView = z.output<typeof terminalView>;
/** See terminalQuery. */
export type TerminalQuery = z.output<typeof terminalQuery>;
/** See terminalNotice. */
export type TerminalNotice = z.output<typeof terminalNotice>;
