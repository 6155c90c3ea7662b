// What a harness sees of the tool host: the platform's and the project's tools, the same for every harness.
// Must not know any single harness. Source: A44, A45, A50 to A53, A106 to A111.

import type { PermissionQuestion } from '#schema/rules/permission.ts';

/** JSON Schema of a tool's arguments, of type object; passed on as it is. */
export type ToolParameters = Readonly<Record<string, unknown>>;

/** One tool as a model reads it. `name`: snake_case, at most 64 characters. */
export type ToolSpec = Readonly<{ name: string; description: string; parameters: ToolParameters }>;

/** One call. `arguments` is what the model wrote, not validated yet. `threadId`: ROOT_THREAD or a child's. */
export type ToolCall = Readonly<{
  name: string;
  arguments: unknown;
  threadId: string;
  callId: string;
  agent: string | null;
}>;

/** A file that goes back to the model. `url` is a `data:` URL. */
export type ToolAttachment = Readonly<{ mime: string; url: string }>;

/** The answer of a tool; output is already cut to the limit. Source: A108. */
export type ToolOutcome =
  | Readonly<{
      kind: 'completed';
      title: string;
      output: string;
      metadata: Readonly<Record<string, unknown>>;
      attachments: readonly ToolAttachment[];
    }>
  | Readonly<{ kind: 'failed'; message: string }>;

/** Whether a call may be made at all: there is such a tool, and the agent may use it. Source: A110. */
export type ToolAccess = 'allowed' | 'unknown' | 'forbidden';

/** The tools of a session. */
export type ToolHost = Readonly<{
  /** All loaded tools; fixed for the life of the harness. */
  specs: readonly ToolSpec[];
  /** Names that an agent may see and call; `null` or an agent of the harness's own: what the session's agent may. Source: A111. */
  visibleTo: (agent: string | null) => ReadonlySet<string>;
  access: (name: string, agent: string | null) => ToolAccess;
  /** Runs one call; failure and refusal are data. Never rejects. `signal` ends it. */
  call: (call: ToolCall, signal: AbortSignal) => Promise<ToolOutcome>;
}>;

/** Permission capability of the tools that have one, beside their own names. Source: A52. */
const CAPABILITY: Readonly<Record<string, string>> = {
  web_search: 'websearch',
  image_search: 'websearch',
  scrape_webpage: 'webfetch',
};

/** Tools that the standard harness cannot ask for: a rule that says `ask` denies them there. Source: A52. */
export const UNASKABLE_TOOLS: readonly string[] = Object.keys(CAPABILITY);

/** Commands of `memory` that change nothing. Source: A53. */
const READING_COMMANDS: readonly unknown[] = ['view'];

/**
 * What permission rules are asked about a call of a tool of ours; the answer is `decidePermission`'s. `memory` has capabilities where the harness asks in
 * process only: there what changes a file follows `edit`, and `view` follows `read`. Source: A52, A53, A116, A117.
 */
export const permissionQuestionOf = (name: string, args: unknown, memoryFollowsFiles: boolean): PermissionQuestion => {
  const fields = typeof args === 'object' && args !== null ? (args as Readonly<Record<string, unknown>>) : {};
  if (name === 'memory') {
    const path = fields['path'] ?? fields['old_path'];
    const subjects = typeof path === 'string' ? [path] : [];
    const capability = READING_COMMANDS.includes(fields['command']) ? 'read' : 'edit';
    return { keys: memoryFollowsFiles ? [name, capability] : [name], subjects };
  }
  const capability = Object.hasOwn(CAPABILITY, name) ? CAPABILITY[name] : undefined;
  return { keys: capability === undefined ? [name] : [name, capability], subjects: [] };
};
