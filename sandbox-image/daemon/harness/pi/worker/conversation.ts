// One conversation of Pi: the session's own or a subagent's, with our hooks first and last, and prompts that run one at
// a time. Must not know the protocol beyond its link. Source: A39, A42, A43, A54, A81, A104, A126, A127, A136.
import { join } from 'node:path';
import type { TurnEnd } from '../../contract/adapter.ts';
import { RELAY_RETRY_HEADER } from '../../contract/relay-retry.ts';
import { createPermissions, type Permissions, type ToolUse } from '../../judge/permissions.ts';
import { realPath } from '../../judge/real-path.ts';
import { createEventMapper } from '../map-events.ts';
import type { PiAssistant, PiEvent, PiMessage } from '../pi-events.ts';
import type { RulesText, WorkerStart } from '../protocol.ts';
import { turnErrorOf } from '../turn-error.ts';
import { evictImages } from './images.ts';
import type { Link } from './link.ts';
import { type Persona, PROVIDER_ID } from './persona.ts';
import type {
  LoadedExtensions,
  PiExtensionApi,
  PiLoader,
  PiModel,
  PiModelRuntime,
  PiModule,
  PiSession,
  PiTool,
  ThinkingLevel,
  ToolCallVerdict,
} from './pi-api.ts';
import { findSessionFile } from './session-file.ts';
import { createTools } from './tools.ts';

/** What all conversations of the thread share. `rules` is read for every prompt. */
export type Shared = Readonly<{
  pi: PiModule;
  runtime: PiModelRuntime;
  start: WorkerStart;
  link: Link;
  rules: () => RulesText | null;
  nowMs: () => number;
  /** Text that no other start of this thread uses in its ids. */
  seed: string;
}>;

/** One prompt. `messageId`: id of the user's message, empty for a new one. */
export type Prompt = Readonly<{
  text: string;
  messageId: string;
  persona: Persona;
  model: string;
  variant: string | undefined;
  /** The text is a slash command of the project. */
  expand: boolean;
}>;

/** A conversation. */
export type Conversation = Readonly<{
  loader: PiLoader;
  /** Why an older one could not be gone on with. */
  discarded: string | null;
  file: () => string | undefined;
  /** Runs one prompt to its end; resolves for failure too. */
  prompt: (prompt: Prompt, signal: AbortSignal) => Promise<TurnEnd>;
  /** Shrinks what the model sees; rejects with why it could not. */
  compact: (persona: Persona, model: string, signal: AbortSignal) => Promise<void>;
  /** Text of the newest answer. */
  answer: () => string;
  dispose: () => void;
}>;

/** Settings of one conversation. `more`: tools that only a root has; they get its permissions. */
export type ConversationOptions = Readonly<{
  id: string;
  threadId: string;
  parentFile?: string | undefined;
  persona: Persona;
  model: string;
  /** Tools that only this one has, for example `task`. */
  more: (parts: Readonly<{ persona: () => Persona; model: () => string }>) => readonly PiTool[];
}>;

const LEVELS: ReadonlySet<string> = new Set(['minimal', 'low', 'medium', 'high', 'xhigh', 'max']);
const DIRECT: ReadonlySet<string> = new Set(['direct', 'model-only']);
const OURS = '<inline:beeuni>';
const LAST = '<inline:beeuni-last>';

const sectionOf = (rules: RulesText | null): string =>
  rules === null
    ? ''
    : `\n\n<project_instructions path="${rules.path}">\n${rules.text.trimEnd()}\n</project_instructions>`;

const textOf = (message: PiAssistant | undefined): string =>
  (message?.content ?? []).flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');

const isTask = (block: PiAssistant['content'][number]): boolean => block.type === 'toolCall' && block.name === 'task';

/** Whether calls of one answer must run one after the other. Source: A126. */
const isMixed = (message: PiAssistant): boolean => {
  const calls = message.content.filter((block) => block.type === 'toolCall');
  return calls.some(isTask) && !calls.every(isTask);
};

/** Our hooks first, those of the project next, and one more look of ours at what they made of a call. Source: A81. */
const inOrder = (loaded: LoadedExtensions): LoadedExtensions => {
  const named = (path: string) => loaded.extensions.filter((extension) => extension.path === path);
  const others = loaded.extensions.filter(({ path }) => path !== OURS && path !== LAST);
  return { ...loaded, extensions: [...named(OURS), ...others, ...named(LAST)] };
};

/** Opens or begins a conversation. */
export const openConversation = async (shared: Shared, options: ConversationOptions): Promise<Conversation> => {
  const { pi, runtime, start, link } = shared;
  const { threadId } = options;
  const mapper = createEventMapper(threadId, `${shared.seed}${threadId === 'root' ? '' : options.id.slice(-6)}`);
  let persona = options.persona;
  let modelName = options.model;
  let requests = 0;
  let lastAnswer: PiAssistant | undefined;
  let mixed = false;
  let queue: Promise<unknown> = Promise.resolve();

  const inTurn = <T>(run: () => Promise<T>): Promise<T> => {
    if (!mixed) return run();
    const next = queue.then(run, run);
    queue = next.catch(() => {});
    return next;
  };
  const permissions: Permissions = createPermissions({
    workspace: start.workspace,
    realPath,
    skills: start.skills,
    ownTools: new Set(start.tools.map(({ name }) => name)),
    threadId,
    rules: () => persona.rules,
    ask: (request, signal) => link.call('ask', request, signal),
    messageOf: mapper.messageOf,
  });
  const isVisible = (tool: string): boolean =>
    (persona.tools === null || !start.tools.some((spec) => spec.name === tool) || persona.tools.has(tool)) &&
    !permissions.isHidden(tool);
  const isLastStep = (): boolean => persona.steps !== undefined && requests >= persona.steps;

  const judge = async (use: ToolUse, signal: AbortSignal | undefined): Promise<ToolCallVerdict | undefined> => {
    if (isLastStep()) return { block: true, reason: 'The limit of steps for this turn is reached.', terminate: true };
    if (!isVisible(use.tool)) return { block: true, reason: `The tool ${use.tool} is not available to this agent.` };
    const verdict = await permissions.judge(use, signal);
    return verdict.allowed ? undefined : { block: true, reason: verdict.reason, terminate: verdict.final };
  };

  /** The summary of a compaction by the model of its role; without one, or when it fails, Pi writes it with the running model. */
  const summarise = async (preparation: unknown, instructions: string | undefined, signal: AbortSignal) => {
    const name = start.compactionModel;
    const model = name === null || name === modelName ? undefined : runtime.getModel(PROVIDER_ID, name);
    if (model === undefined) return undefined;
    const stream: PiModelRuntime['streamSimple'] = (...args) => runtime.streamSimple(...args);
    const headers = { 'x-beeuni-agent': 'compaction', [RELAY_RETRY_HEADER]: '1' };
    try {
      return {
        compaction: await pi.compact(preparation, model, undefined, headers, instructions, signal, 'off', stream),
      };
    } catch (error) {
      if (!signal.aborted) link.log('warn', `the model ${name} wrote no summary: ${String(error)}`);
      return undefined;
    }
  };

  const first = (api: PiExtensionApi): void => {
    api.on('before_agent_start', ({ systemPromptOptions: prompt }) => {
      prompt.customPrompt = persona.prompt + sectionOf(shared.rules());
      prompt.selectedTools = [...new Set([...offered(), ...prompt.selectedTools])].filter(isVisible);
      prompt.skills = prompt.skills.filter((skill) => persona.seesSkill(skill.name));
    });
    api.on('before_provider_headers', ({ headers }) => {
      if (persona.name !== null) headers['x-beeuni-agent'] = persona.name;
      headers['x-session-id'] = options.id;
      headers[RELAY_RETRY_HEADER] = '1';
      if (threadId !== 'root') headers['x-parent-session-id'] = start.rootId;
    });
    api.on('before_provider_request', ({ payload }) => {
      requests += 1;
      return {
        ...(payload as Record<string, unknown>),
        ...(persona.temperature === undefined ? {} : { temperature: persona.temperature }),
        ...(persona.topP === undefined ? {} : { top_p: persona.topP }),
        ...(isLastStep() ? { tool_choice: 'none' } : {}),
      };
    });
    api.on('session_before_compact', ({ preparation, customInstructions, signal }) =>
      summarise(preparation, customInstructions, signal),
    );
    api.on('tool_call', ({ toolName, toolCallId, input }, context) =>
      judge({ tool: toolName, callId: toolCallId, input }, context.signal),
    );
  };
  const last = (api: PiExtensionApi): void => {
    api.on('context', ({ messages }) => ({ messages: evictImages(messages, persona.keptImages) }));
    api.on('tool_call', ({ toolName, toolCallId, input }, context) =>
      judge({ tool: toolName, callId: toolCallId, input }, context.signal),
    );
  };

  /** All tools that a model may be told of; what an earlier prompt's agent did not see is among them. */
  const offered = (): readonly string[] =>
    session
      .getAllTools()
      .filter(({ name, exposure }) => DIRECT.has(exposure) && name !== 'powershell')
      .filter(({ name }) => session.getToolDefinition(name)?.defaultActive !== false)
      .map(({ name }) => name);

  const isRoot = threadId === 'root';
  const settings = pi.SettingsManager.inMemory(
    {
      retry: { enabled: false, provider: { maxRetries: 0 } },
      // Subagents do not compact. Source: A127.
      compaction: { ...start.project.compaction, ...(isRoot ? {} : { enabled: false }) },
      cacheWarming: 'off',
      httpIdleTimeoutMs: 900_000,
      enableInstallTelemetry: false,
    },
    { projectTrusted: false },
  );
  const loader = new pi.DefaultResourceLoader({
    cwd: start.workspace,
    agentDir: start.agentDirectory,
    settingsManager: settings,
    // Nothing is looked for: what loads is named here, so neither the workspace nor a home folder has a say.
    noExtensions: true,
    noSkills: true,
    noPromptTemplates: true,
    noThemes: true,
    noContextFiles: true,
    systemPromptOverride: () => persona.prompt + sectionOf(shared.rules()),
    appendSystemPrompt: [],
    additionalExtensionPaths: start.project.extensions,
    additionalSkillPaths: [
      ...start.skills.map(({ directory }) => join(directory, 'SKILL.md')),
      ...start.project.skills,
    ],
    additionalPromptTemplatePaths: start.project.prompts,
    extensionFactories: [
      { name: 'beeuni', factory: first },
      { name: 'beeuni-last', factory: last },
    ],
    extensionsOverride: inOrder,
  });
  await loader.reload();

  const found = findSessionFile(start.sessionsDirectory, options.id, shared.nowMs());
  const sessionManager =
    found.path === undefined
      ? pi.SessionManager.create(start.workspace, start.sessionsDirectory, {
          id: options.id,
          ...(options.parentFile === undefined ? {} : { parentSession: options.parentFile }),
        })
      : pi.SessionManager.open(found.path, start.sessionsDirectory, start.workspace);
  const modelOf = (name: string): PiModel => {
    const model = runtime.getModel(PROVIDER_ID, name);
    if (model === undefined) throw new Error(`the model ${name} is not available here`);
    return model;
  };
  const more = options.more({ persona: () => persona, model: () => modelName });
  const customTools = createTools(
    {
      pi,
      start,
      link,
      threadId,
      agent: () => persona.name,
      permissions,
      messageOf: mapper.messageOf,
      inTurn,
    },
    more,
  );
  const { session }: { session: PiSession } = await pi.createAgentSession({
    cwd: start.workspace,
    agentDir: start.agentDirectory,
    modelRuntime: runtime,
    model: runtime.getModel(PROVIDER_ID, modelName),
    thinkingLevel: 'off',
    settingsManager: settings,
    resourceLoader: loader,
    sessionManager,
    customTools,
  });
  const report = (error: unknown): void => {
    const { error: text, extensionPath } = (error ?? {}) as { error?: unknown; extensionPath?: string };
    link.log('warn', `an extension failed: ${extensionPath ?? ''} ${String(text ?? error)}`);
  };
  await session.bindExtensions({ mode: 'rpc', onError: report });

  let isBusyTold = false;
  const onMessage = (message: PiMessage): void => {
    if (message.role !== 'assistant') return;
    lastAnswer = message;
    mixed = isMixed(message);
  };
  session.subscribe((event: PiEvent) => {
    if (event.type === 'message_end') onMessage(event.message);
    link.emit(mapper.map(event, shared.nowMs()));
    if (!isRoot && !isBusyTold && event.type === 'message_start' && event.message.role === 'user') {
      isBusyTold = true;
      link.emit([{ type: 'session.status', threadId, data: { status: 'busy' } }]);
    }
  });

  const use = async (next: Persona, model: string, variant: string | undefined): Promise<void> => {
    persona = next;
    modelName = model;
    const wanted = modelOf(model);
    if (session.model?.id !== wanted.id) await session.setModel(wanted);
    session.setThinkingLevel((variant !== undefined && LEVELS.has(variant) ? variant : 'off') as ThinkingLevel);
  };

  const endOf = (aborted: boolean): TurnEnd => {
    if (aborted || lastAnswer?.stopReason === 'aborted') return { kind: 'aborted' };
    if (lastAnswer?.stopReason === 'error') return { kind: 'failed', ...turnErrorOf(lastAnswer.errorMessage) };
    if (lastAnswer?.stopReason === 'length') {
      return { kind: 'failed', code: 'output_length', message: 'the answer reached the longest output of the model' };
    }
    return { kind: 'completed' };
  };

  /** Runs something that `signal` ends. */
  const abortable = async (signal: AbortSignal, run: () => Promise<void>): Promise<void> => {
    const onAbort = (): void => {
      session.abortCompaction();
      void session.abort();
    };
    if (signal.aborted) return;
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await run();
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  };

  return {
    loader,
    discarded: found.discarded,
    file: () => session.sessionFile,
    prompt: async (prompt, signal) => {
      lastAnswer = undefined;
      requests = 0;
      isBusyTold = false;
      await use(prompt.persona, prompt.model, prompt.variant);
      mapper.begin({ messageId: prompt.messageId, agent: persona.name, model: modelName });
      try {
        await abortable(signal, () => session.prompt(prompt.text, { expandPromptTemplates: prompt.expand }));
      } catch (error) {
        if (!signal.aborted) {
          return { kind: 'failed', ...turnErrorOf(error instanceof Error ? error.message : String(error)) };
        }
      }
      if (!isRoot) {
        link.emit([
          { type: 'session.status', threadId, data: { status: 'idle' } },
          { type: 'session.idle', threadId, data: {} },
        ]);
      }
      return endOf(signal.aborted);
    },
    compact: async (next, model, signal) => {
      await use(next, model, undefined);
      mapper.begin({ messageId: '', agent: persona.name, model: modelName });
      await abortable(signal, async () => {
        await session.compact();
      });
    },
    answer: () => textOf(lastAnswer),
    dispose: () => session.dispose(),
  };
};
