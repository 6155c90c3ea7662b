// What a harness sees of the tool host: the platform's and the project's tools, the same for every harness.
// Must not know any single tool or harness. Source: A44, A45, A50, A106 to A111.

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

/** The tools of a session. */
export type ToolHost = Readonly<{
  /** All loaded tools; fixed for the life of the harness. */
  specs: readonly ToolSpec[];
  /** Names that an agent may see and call; `null`: the harness's own agent. Source: A111. */
  visibleTo: (agent: string | null) => ReadonlySet<string>;
  /** Runs one call; failure and refusal are data. Never rejects. `signal` ends it. */
  call: (call: ToolCall, signal: AbortSignal) => Promise<ToolOutcome>;
}>;
