// What a harness may offer besides prompts: the capability ids, and the daemon's routes behind them on port 8000.
// Must not know which harness offers what. Source: A30 to A33, A62 to A67, A143.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { promptPart } from './turns.ts';

/** Ids of session features that a harness may offer, in the order of health's list. Source: A31, A32. */
export const CAPABILITIES = [
  'session.subagents',
  'session.compact',
  'session.commands',
  'session.rewind',
  'session.mcp',
  'session.todo',
  'session.attach',
  'session.config',
  'session.fork',
  'session.shell',
  'session.steer',
] as const;

/** One of CAPABILITIES. */
export type Capability = (typeof CAPABILITIES)[number];

/** One subagent's conversation below the session. */
export const childThread = z.object({ threadId: z.string().max(128), title: z.string().nullable() });
/** One entry of the plan that an agent keeps. */
export const todoEntry = z.object({ content: z.string(), status: z.string(), priority: z.string() });
/** One slash command. `source`: where it comes from, for people. */
export const slashCommand = z.object({
  name: z.string().max(128),
  description: z.string().nullable(),
  source: z.string().max(64),
});
/** One MCP server as the harness sees it. */
export const mcpServer = z.object({ name: z.string(), status: z.string(), error: z.string().nullable() });
/** How the harness's own terminal client is started in a terminal of the sandbox. It holds no secret. */
export const attachCommand = z.object({ command: z.array(z.string()) });
/** A configuration document with its secrets replaced. */
export const runtimeConfig = z.record(z.string(), z.unknown());

const read = <const N extends string, S extends z.ZodType>(operationId: N, last: string, summary: string, body: S) =>
  defineRoute({
    operationId,
    listener: 'daemon',
    method: 'GET',
    path: `/beeuni/runtime/${last}`,
    summary,
    auth: { kind: 'control-plane' },
    responses: { 200: body },
  });

/** `GET /beeuni/runtime/children`. */
export const readChildrenRoute = read(
  'readChildren',
  'children',
  'The conversations of subagents',
  z.object({ children: z.array(childThread) }),
);
/** `GET /beeuni/runtime/todo`. */
export const readTodoRoute = read('readTodo', 'todo', "The agent's plan", z.object({ todos: z.array(todoEntry) }));
/** `GET /beeuni/runtime/commands`. */
export const readCommandsRoute = read(
  'readCommands',
  'commands',
  'The slash commands of the project',
  z.object({ commands: z.array(slashCommand) }),
);
/** `GET /beeuni/runtime/mcp`. */
export const readMcpRoute = read('readMcp', 'mcp', 'The MCP servers', z.object({ servers: z.array(mcpServer) }));
/** `GET /beeuni/runtime/attach`. */
export const readAttachRoute = read('readAttach', 'attach', "The harness's own terminal client", attachCommand);
/** `GET /beeuni/runtime/config`: 404 for a harness that has no such document. */
export const readConfigRoute = read(
  'readRuntimeConfig',
  'config',
  "The harness's configuration without secrets",
  z.object({ config: runtimeConfig }),
);

const change = <B extends z.ZodType, S extends z.ZodType>(
  operationId: string,
  last: string,
  summary: string,
  body: B,
  answer: S,
) =>
  defineRoute({
    operationId,
    listener: 'daemon',
    method: 'POST',
    path: `/beeuni/runtime/${last}`,
    summary,
    auth: { kind: 'control-plane' },
    bodyLimitBytes: 2_097_152,
    body,
    responses: { 200: answer },
  });

/** Body of a rewind. */
export const revertBody = z.object({ messageId: z.string().min(1).max(128) });
/** Body of a fork: what is before the message is kept; absent: everything. */
export const forkBody = z.object({ messageId: z.string().min(1).max(128).optional() });
/** Answer to a fork: the thread under which the conversation before it stays readable. */
export const forked = z.object({ threadId: z.string().max(128) });

/** `POST /beeuni/runtime/revert`: 404 `message_not_found`, 409 `turn_running`. */
export const revertMessageRoute = change(
  'revertMessage',
  'revert',
  'Go back to before a message',
  revertBody,
  z.object({}),
);
/** `POST /beeuni/runtime/unrevert`: 409 `turn_running`, `not_rewound`. */
export const unrevertMessageRoute = change(
  'unrevertMessage',
  'unrevert',
  'Take back a rewind',
  z.object({}),
  z.object({}),
);
/** `POST /beeuni/runtime/fork`: 404 `message_not_found`, 409 `turn_running`. */
export const forkConversationRoute = change(
  'forkConversation',
  'fork',
  'Go on from before a message as another conversation',
  forkBody,
  forked,
);
/** Prompt text for a running turn. `turnId`: the turn that is meant, as the rule of A154 was judged on it; absent: whichever runs. */
export const steeredPrompt = z.object({
  promptId: z.string().max(64),
  turnId: z.string().max(64).optional(),
  messageId: z.string().max(128),
  parts: z.array(promptPart).min(1).max(64),
});

/** `POST /beeuni/runtime/steer`: a prompt for the running turn; 409 `no_active_turn`, also while another turn runs. The same prompt twice joins once. */
export const steerTurnRoute = change(
  'steerTurn',
  'steer',
  'Add a prompt to the running turn',
  steeredPrompt,
  z.object({ turnId: z.string() }),
);

/** See steeredPrompt. */
export type SteeredPrompt = z.output<typeof steeredPrompt>;
