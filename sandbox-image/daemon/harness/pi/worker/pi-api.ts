// The calls of Pi 1.6.0 that we use, as types of our own: Pi's package is loaded by path and its declarations are not
// part of the build. The one place that says what Pi looks like. Source: harness-runtimes §3.1.
import type { PiEvent, PiToolResult } from '../pi-events.ts';
import type { ImageMessage } from './images.ts';

/** A model of Pi's registry. */
export type PiModel = Readonly<{ provider: string; id: string; contextWindow: number }>;
/** How much a model thinks. */
export type ThinkingLevel = 'off' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** A tool as Pi takes it. */
export type PiTool = Readonly<{
  name: string;
  label: string;
  description: string;
  promptSnippet?: string | undefined;
  promptGuidelines?: string[] | undefined;
  parameters: unknown;
  execute: (
    callId: string,
    input: Record<string, unknown>,
    signal: AbortSignal | undefined,
    onUpdate: ((partial: PiToolResult) => void) | undefined,
    context: unknown,
  ) => Promise<PiToolResult>;
}>;

/** A skill that Pi found. */
export type PiSkill = Readonly<{ name: string; description: string; filePath: string; baseDir: string }>;
/** A prompt template that Pi found. */
export type PiTemplate = Readonly<{ name: string; description: string; content: string; filePath: string }>;

/** The parts of a system prompt that a hook may change in place. */
export type PromptOptions = { customPrompt?: string | undefined; selectedTools: string[]; skills: PiSkill[] };

/** What a hook on a tool call may answer. */
export type ToolCallVerdict = Readonly<{ block: true; reason: string; terminate?: boolean | undefined }>;

/** The hooks of an extension that we use. */
export type PiExtensionApi = Readonly<{
  on: {
    (name: 'before_agent_start', handler: (event: { systemPromptOptions: PromptOptions }) => void): void;
    (name: 'before_provider_request', handler: (event: { payload: unknown }) => unknown): void;
    (name: 'before_provider_headers', handler: (event: { headers: Record<string, string> }) => void): void;
    (
      name: 'context',
      handler: (event: { messages: readonly ImageMessage[] }) => { messages: readonly ImageMessage[] },
    ): void;
    (
      name: 'session_before_compact',
      handler: (event: {
        preparation: unknown;
        customInstructions?: string | undefined;
        signal: AbortSignal;
      }) => Promise<{ compaction: unknown } | undefined>,
    ): void;
    (
      name: 'tool_call',
      handler: (
        event: { toolName: string; toolCallId: string; input: Record<string, unknown> },
        context: { signal?: AbortSignal | undefined },
      ) => Promise<ToolCallVerdict | undefined>,
    ): void;
  };
}>;

/** Loaded extensions, in the order in which they are asked. */
export type LoadedExtensions = {
  extensions: Readonly<{ path: string; resolvedPath?: string | undefined }>[];
  errors: readonly Readonly<{ path: string; error: string }>[];
};

/** The conversations of one folder. */
export type PiSessionManager = Readonly<{ getSessionId: () => string; getSessionFile: () => string | undefined }>;

/** Whatever loads skills, templates and extensions. */
export type PiLoader = Readonly<{
  reload: () => Promise<void>;
  getExtensions: () => LoadedExtensions;
  getSkills: () => Readonly<{ skills: PiSkill[] }>;
  getPrompts: () => Readonly<{ prompts: PiTemplate[] }>;
}>;

/** The registry of models. */
export type PiModelRuntime = Readonly<{
  registerProvider: (id: string, config: Readonly<Record<string, unknown>>) => void;
  getModel: (provider: string, id: string) => PiModel | undefined;
  streamSimple: (model: PiModel, context: unknown, options?: unknown) => unknown;
}>;

/** One conversation. */
export type PiSession = Readonly<{
  sessionFile: string | undefined;
  model: PiModel | undefined;
  messages: readonly Readonly<{ role: string }>[];
  /** All tools that are known, whether the model is told of them or not. */
  getAllTools: () => readonly Readonly<{ name: string; exposure: string }>[];
  getToolDefinition: (name: string) => Readonly<{ defaultActive?: boolean | undefined }> | undefined;
  subscribe: (listener: (event: PiEvent) => void) => () => void;
  bindExtensions: (bindings: Readonly<Record<string, unknown>>) => Promise<void>;
  prompt: (text: string, options: Readonly<{ expandPromptTemplates: boolean }>) => Promise<void>;
  abort: () => Promise<void>;
  abortCompaction: () => void;
  compact: () => Promise<unknown>;
  setModel: (model: PiModel) => Promise<void>;
  setThinkingLevel: (level: ThinkingLevel) => void;
  dispose: () => void;
}>;

/** Where Pi's bash tool runs its commands. */
export type BashOperations = Readonly<{
  exec: (
    command: string,
    cwd: string,
    options: Readonly<{ onData: (data: Buffer) => void; signal?: AbortSignal; timeout?: number }>,
  ) => Promise<{ exitCode: number | null }>;
}>;

type ToolFactory = (cwd: string, options?: Readonly<Record<string, unknown>>) => PiTool;

/** Pi's package. */
export type PiModule = Readonly<{
  VERSION: string;
  ModelRuntime: { create: (options: Readonly<Record<string, unknown>>) => Promise<PiModelRuntime> };
  SettingsManager: {
    inMemory: (settings: Readonly<Record<string, unknown>>, options: { projectTrusted: boolean }) => unknown;
  };
  DefaultResourceLoader: new (options: Readonly<Record<string, unknown>>) => PiLoader;
  SessionManager: {
    create: (
      cwd: string,
      folder: string,
      options: { id: string; parentSession?: string | undefined },
    ) => PiSessionManager;
    open: (file: string, folder: string, cwd: string) => PiSessionManager;
  };
  /** Summary of what a compaction leaves out, by a model of our choice. */
  compact: (
    preparation: unknown,
    model: PiModel,
    apiKey: undefined,
    headers: Readonly<Record<string, string>>,
    instructions: string | undefined,
    signal: AbortSignal,
    thinking: 'off',
    stream: PiModelRuntime['streamSimple'],
  ) => Promise<unknown>;
  createAgentSession: (options: Readonly<Record<string, unknown>>) => Promise<{ session: PiSession }>;
  createBashToolDefinition: (
    cwd: string,
    options: Readonly<{ operations: BashOperations; exposeSessionEnvironment: false }>,
  ) => PiTool;
  createReadToolDefinition: ToolFactory;
  createEditToolDefinition: ToolFactory;
  createWriteToolDefinition: ToolFactory;
  createGrepToolDefinition: ToolFactory;
  createFindToolDefinition: ToolFactory;
  createLsToolDefinition: ToolFactory;
  parseFrontmatter: (text: string) => Readonly<{ frontmatter: Record<string, unknown>; body: string }>;
}>;
