// Optional session features of a harness and their ids on the wire. A harness that has the member offers the feature; the
// host answers every other one for it. Must not know any single harness. Source: A30 to A34, A62 to A64.
import type { Capability } from '#schema/wire/runtime.ts';
import type { Turn, TurnPart } from '#schema/wire/turns.ts';
import type { TurnEnd } from './turn-end.ts';

/** One subagent's conversation below the session. */
export type ChildThread = Readonly<{ threadId: string; title: string }>;

/** One entry of the plan that an agent keeps. */
export type TodoEntry = Readonly<{ content: string; status: string; priority: string }>;

/** One slash command. `source`: where it comes from, for people. */
export type SlashCommand = Readonly<{ name: string; description: string | null; source: string }>;

/** One MCP server as the harness sees it. */
export type McpServer = Readonly<{ name: string; status: string; error: string | null }>;

/** A turn that is no prompt: what it is comes apart from it. */
export type VerbTurn = Omit<Turn, 'parts'>;

/** Prompt text for a running turn. `messageId`: the client's, an idempotency key. `turnId`: the only turn that it may join. */
export type SteeredPrompt = Readonly<{
  promptId: string;
  turnId?: string | undefined;
  messageId: string;
  parts: readonly Extract<TurnPart, { type: 'text' }>[];
}>;

/** The conversation after a fork. `threadId`: under which the one before it stays readable. */
export type Fork = Readonly<{ threadId: string }>;

/** How the harness's own terminal client is started inside the sandbox; `environment` holds its password. */
export type AttachCommand = Readonly<{ command: readonly string[]; environment: Readonly<Record<string, string>> }>;

/**
 * Optional members of a harness. What is absent answers 501 `feature_not_supported`, or 404 for a document. Members that
 * take a turn run it like `submit`: one at a time, resolving for failure too, within seconds after `signal` fired.
 * The others reject with a BeeuniError and are called while no turn runs, unless they say otherwise.
 */
export type OptionalMembers = Readonly<{
  /** The conversations of subagents; any time. */
  children?: (signal: AbortSignal) => Promise<readonly ChildThread[]>;
  /** A turn that shrinks the conversation. It reports `session.compacted`. */
  compact?: (turn: VerbTurn, signal: AbortSignal) => Promise<TurnEnd>;
  /** Slash commands of the project: the list, any time, and a turn that runs one. An unknown name ends the turn. */
  commands?: Readonly<{
    list: (signal: AbortSignal) => Promise<readonly SlashCommand[]>;
    run: (turn: VerbTurn, name: string, text: string, signal: AbortSignal) => Promise<TurnEnd>;
  }>;
  /** Back to before a message, with files, and forth again. Errors: NotFoundError `message_not_found`. */
  rewind?: Readonly<{
    revert: (messageId: string, signal: AbortSignal) => Promise<void>;
    unrevert: (signal: AbortSignal) => Promise<void>;
  }>;
  /** MCP servers of the harness; any time. */
  mcp?: (signal: AbortSignal) => Promise<readonly McpServer[]>;
  /** The plan as it stands; any time. */
  todo?: (signal: AbortSignal) => Promise<readonly TodoEntry[]>;
  /** The harness's own terminal client; any time. */
  attach?: (signal: AbortSignal) => Promise<AttachCommand>;
  /** The harness's effective configuration; any time. The host takes secrets out. */
  config?: (signal: AbortSignal) => Promise<Readonly<Record<string, unknown>>>;
  /** Goes on from before a message as another conversation. Errors: NotFoundError `message_not_found`. */
  fork?: (messageId: string | null, signal: AbortSignal) => Promise<Fork>;
  /** A turn that runs a shell command without a model; the conversation shows it. */
  shell?: (turn: VerbTurn, command: string, signal: AbortSignal) => Promise<TurnEnd>;
  /** Joins the running turn at its next step. False: no turn runs that could take it. */
  steer?: (prompt: SteeredPrompt, signal: AbortSignal) => Promise<boolean>;
}>;

/** Id on the wire of every optional member. Source: A31, A32. */
export const CAPABILITY_OF = {
  children: 'session.subagents',
  compact: 'session.compact',
  commands: 'session.commands',
  rewind: 'session.rewind',
  mcp: 'session.mcp',
  todo: 'session.todo',
  attach: 'session.attach',
  config: 'session.config',
  fork: 'session.fork',
  shell: 'session.shell',
  steer: 'session.steer',
} as const satisfies Record<keyof OptionalMembers, Capability>;

/** The capability ids of a harness, computed from its members, so that list and behaviour cannot differ. Source: A33. */
export const capabilitiesOf = (optional: OptionalMembers): readonly Capability[] =>
  (Object.keys(CAPABILITY_OF) as (keyof OptionalMembers)[])
    .filter((member) => optional[member] !== undefined)
    .map((member) => CAPABILITY_OF[member]);
