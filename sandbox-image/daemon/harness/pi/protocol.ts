// What crosses between the daemon's main thread and the thread that Pi runs in: plain data only.
// Must not know either side. Source: D13, harness-runtimes §3.5.
import type { ClaimedModel, CompiledAgent } from '#schema/wire/claim.ts';
import type { HumanAnswer, HumanRequest, TurnEnd } from '../contract/adapter.ts';
import type { VerbTurn } from '../contract/capabilities.ts';
import type { HarnessEvent } from '../contract/events.ts';
import type { Skill } from '../contract/skills.ts';
import type { ToolCall, ToolOutcome, ToolSpec } from '../contract/tools.ts';

/** The rules file as it goes into prompts. Source: A54. */
export type RulesText = Readonly<{ path: string; text: string }>;

/** What the project's directory for Pi holds. Absolute paths. Source: A70, A79, A80. */
export type ProjectFiles = Readonly<{
  extensions: readonly string[];
  prompts: readonly string[];
  skills: readonly string[];
  compaction: Readonly<{
    enabled?: boolean | undefined;
    reserveTokens?: number | undefined;
    keepRecentTokens?: number | undefined;
  }>;
  /** What cannot be loaded, with the reason. */
  failed: readonly Readonly<{ source: string; reason: string }>[];
}>;

/** All that the thread is started with. `piModule`: URL of Pi's entry. */
export type WorkerStart = Readonly<{
  piModule: string;
  rootId: string;
  workspace: string;
  /** Folder of the conversations, on the session's volume. */
  sessionsDirectory: string;
  /** Folder that Pi takes for its own; nothing of it is kept. */
  agentDirectory: string;
  agent: string | null;
  agents: readonly CompiledAgent[];
  model: ClaimedModel | null;
  models: readonly ClaimedModel[];
  /** The model of the role that writes summaries; null: the one that runs. Source: 40-settings B2, J5. */
  compactionModel: string | null;
  unattended: boolean;
  modelBaseUrl: string;
  token: string;
  rules: RulesText | null;
  project: ProjectFiles;
  skills: readonly Skill[];
  tools: readonly ToolSpec[];
  /** Agent name (`''`: none) to the names of tools that it sees; an agent that is not listed sees all. */
  visibleTools: Readonly<Record<string, readonly string[]>>;
}>;

/** A subagent's conversation. */
export type ChildSummary = Readonly<{ id: string; title: string }>;
/** A slash command. */
export type CommandSummary = Readonly<{ name: string; description: string }>;

/** One command line that runs in the main thread. `timeoutMs`: null for none. */
export type ExecRequest = Readonly<{ command: string; cwd: string; timeoutMs: number | null }>;
/** How a command ended. */
export type ExecResult = Readonly<
  | { kind: 'exited'; code: number | null }
  | { kind: 'aborted' }
  | { kind: 'timeout' }
  | { kind: 'failed'; message: string }
>;

/** What a turn does. */
export type TurnTask =
  | Readonly<{ kind: 'prompt'; text: string }>
  | Readonly<{ kind: 'command'; name: string; arguments: string }>
  | Readonly<{ kind: 'compact' }>;

/** Calls from the thread to the host: name to request and answer. */
export type Calls = {
  ask: { request: HumanRequest; answer: HumanAnswer };
  exec: { request: ExecRequest; answer: ExecResult };
  tool: { request: ToolCall; answer: ToolOutcome };
};
/** Name of a call. */
export type CallName = keyof Calls;

/** From the thread. */
export type FromWorker =
  | Readonly<{
      kind: 'ready';
      version: string;
      model: string | null;
      extensions: Readonly<{
        loaded: readonly string[];
        failed: readonly Readonly<{ source: string; reason: string }>[];
      }>;
      commands: readonly CommandSummary[];
      children: readonly ChildSummary[];
      /** Why an older conversation could not be gone on with; null: it was, or there was none. */
      discarded: string | null;
    }>
  | Readonly<{ kind: 'events'; events: readonly HarnessEvent[] }>
  | Readonly<{ kind: 'child'; child: ChildSummary }>
  | Readonly<{ kind: 'model'; model: string | null }>
  | Readonly<{ kind: 'turn-ended'; turnId: string; end: TurnEnd }>
  | { [N in CallName]: Readonly<{ kind: 'call'; id: number; name: N; request: Calls[N]['request'] }> }[CallName]
  | Readonly<{ kind: 'cancel'; id: number }>
  /** The thread has taken so many bytes of a command's output. */
  | Readonly<{ kind: 'taken'; id: number; bytes: number }>
  | Readonly<{ kind: 'log'; level: 'info' | 'warn' | 'error'; message: string }>
  | Readonly<{ kind: 'pong'; n: number }>;

/** To the thread. */
export type ToWorker =
  | Readonly<{ kind: 'turn'; turn: VerbTurn; task: TurnTask }>
  | Readonly<{ kind: 'abort'; turnId: string }>
  | Readonly<{ kind: 'rules'; rules: RulesText | null }>
  | Readonly<{ kind: 'answer'; id: number; answer: HumanAnswer | ExecResult | ToolOutcome }>
  | Readonly<{ kind: 'output'; id: number; data: Uint8Array }>
  | Readonly<{ kind: 'ping'; n: number }>;
