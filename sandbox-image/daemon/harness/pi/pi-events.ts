// The events of Pi 1.6.0 as far as they are read here. Types only. Source: harness-runtimes §3.3.

/** Tokens of one model call. */
export type PiUsage = Readonly<{
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  reasoning?: number | undefined;
  totalTokens: number;
  cost: Readonly<{ total: number }>;
}>;

/** One block of a message. */
export type PiContent =
  | Readonly<{ type: 'text'; text: string }>
  | Readonly<{ type: 'thinking'; thinking: string }>
  | Readonly<{ type: 'toolCall'; id: string; name: string; arguments: unknown }>
  | Readonly<{ type: 'image'; data: string; mimeType: string }>;

/** The answer of a model. `errorMessage`: set where `stopReason` is `error` or `aborted`. */
export type PiAssistant = Readonly<{
  role: 'assistant';
  content: readonly PiContent[];
  model: string;
  usage: PiUsage;
  stopReason: string;
  errorMessage?: string | undefined;
  timestamp: number;
}>;

/** Any message; roles besides these two are not shown. */
export type PiMessage =
  | PiAssistant
  | Readonly<{ role: 'user'; content: string | readonly PiContent[]; timestamp: number }>
  | Readonly<{ role: 'toolResult' | 'system' | 'custom' }>;

/** What a tool gave back. */
export type PiToolResult = Readonly<{
  content: readonly PiContent[];
  details?: unknown;
  structuredContent?: unknown;
  isError?: boolean | undefined;
  terminate?: boolean | undefined;
}>;

/** A step of a streamed answer. */
export type PiStep = Readonly<{ type: string; contentIndex?: number; delta?: string; content?: string }>;

/** An event of a conversation; others exist and say nothing to us. */
export type PiEvent =
  | Readonly<{ type: 'message_start' | 'message_end'; message: PiMessage }>
  | Readonly<{ type: 'message_update'; message: PiMessage; assistantMessageEvent: PiStep }>
  | Readonly<{ type: 'tool_execution_start'; toolCallId: string; toolName: string; args: unknown }>
  | Readonly<{ type: 'tool_execution_update'; toolCallId: string; toolName: string; partialResult: PiToolResult }>
  | Readonly<{
      type: 'tool_execution_end';
      toolCallId: string;
      toolName: string;
      result: PiToolResult;
      isError: boolean;
    }>
  | Readonly<{ type: 'turn_end'; message: PiMessage }>
  | Readonly<{ type: 'compaction_start'; reason: 'manual' | 'threshold' | 'overflow' }>
  | Readonly<{
      type: 'compaction_end';
      reason: 'manual' | 'threshold' | 'overflow';
      result?: Readonly<{ summary: string; usage?: PiUsage | undefined }> | undefined;
      aborted: boolean;
      errorMessage?: string | undefined;
    }>
  | Readonly<{ type: 'agent_start' | 'agent_end' | 'agent_settled' | 'turn_start' | 'entry_appended' }>;
