// The thread that Pi runs in: loads Pi, opens the session's conversation, and runs what the host asks for.
// Everything it knows came with its start; it reads no environment. Source: D13, harness-runtimes §3.5.
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { TurnEnd } from '../../contract/adapter.ts';
import type { VerbTurn } from '../../contract/capabilities.ts';
import { ROOT_THREAD } from '../../contract/events.ts';
import type { RulesText, ToWorker, TurnTask, WorkerStart } from '../protocol.ts';
import { turnErrorOf } from '../turn-error.ts';
import { type Conversation, openConversation, type Shared } from './conversation.ts';
import { createLink } from './link.ts';
import { choosePersona, type Persona, PROVIDER_ID } from './persona.ts';
import type { PiModelRuntime, PiModule } from './pi-api.ts';
import { createTaskTool, openChildren } from './task.ts';

const port = parentPort;
if (port === null) throw new Error('this file runs as a thread');
const start = workerData as WorkerStart;
const link = createLink(port);

const inMemory = () => {
  const entries = new Map<string, unknown>();
  return {
    read: async (key: string) => entries.get(key),
    list: async () => [],
    modify: async (key: string, change: (value: unknown) => unknown) => {
      const value = await change(entries.get(key));
      if (value === undefined) entries.delete(key);
      else entries.set(key, value);
      return value;
    },
    delete: async (key: string) => {
      entries.delete(key);
    },
  };
};

/** The registry with the models of the session behind the daemon's relay, and no other. Source: A212. */
const makeRuntime = async (pi: PiModule): Promise<PiModelRuntime> => {
  const runtime = await pi.ModelRuntime.create({
    credentials: inMemory(),
    modelsPath: null,
    modelsStorePath: join(start.agentDirectory, 'models.json'),
    allowModelNetwork: false,
    refreshOnCreate: false,
  });
  const all = start.model === null ? start.models : [start.model, ...start.models];
  runtime.registerProvider(PROVIDER_ID, {
    baseUrl: start.modelBaseUrl,
    apiKey: start.token,
    api: 'openai-completions',
    models: [...new Map(all.map((model) => [model.name, model])).values()].map((model) => ({
      id: model.name,
      name: model.name,
      reasoning: model.reasoning,
      input: model.input,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
      contextWindow: model.contextWindowTokens,
      maxTokens: model.maxOutputTokens,
      compat: {
        supportsDeveloperRole: false,
        supportsStore: false,
        supportsStrictMode: false,
        maxTokensField: 'max_tokens',
      },
    })),
  });
  return runtime;
};

let rules: RulesText | null = start.rules;
let nextRules = rules;
const pi = (await import(start.piModule)) as PiModule;
const runtime = await makeRuntime(pi);
const nowMs = (): number => Date.now();
const shared: Shared = {
  pi,
  runtime,
  start,
  link,
  rules: () => rules,
  nowMs,
  seed: nowMs().toString(36),
};
const children = openChildren(start.sessionsDirectory);
const hasModel = (name: string | undefined): name is string =>
  name !== undefined && runtime.getModel(PROVIDER_ID, name) !== undefined;

const { persona: ownPersona } = choosePersona(start, null);
const ownModel = start.model?.name;
const root: Conversation = await openConversation(shared, {
  id: start.rootId,
  threadId: ROOT_THREAD,
  persona: ownPersona,
  model: ownModel ?? '',
  more: (parts) => [createTaskTool({ shared, children, parentFile: () => root.file(), ...parts })],
});

/** The agent and model of a prompt. A model that a prompt names must exist, an agent's is a wish. Source: A104, A192. */
const choose = (turn: VerbTurn): Readonly<{ persona: Persona; model: string | undefined }> => {
  const { persona, refused } = choosePersona(start, turn.agent);
  if (refused) link.log('warn', `a prompt names the agent ${turn.agent}, which cannot run it`);
  if (turn.model !== null) return { persona, model: hasModel(turn.model) ? turn.model : undefined };
  const isOther = turn.agent !== null && turn.agent === persona.name && turn.agent !== start.agent;
  return { persona, model: isOther && hasModel(persona.model) ? persona.model : ownModel };
};

/** What there is to compact is a matter of size, and nothing to do is no failure. */
const NOTHING_TO_DO = /nothing to compact|already compacted/i;

const compact = async (persona: Persona, model: string, signal: AbortSignal): Promise<TurnEnd> => {
  try {
    await root.compact(persona, model, signal);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (!signal.aborted && !NOTHING_TO_DO.test(message)) return { kind: 'failed', ...turnErrorOf(message) };
  }
  return signal.aborted ? { kind: 'aborted' } : { kind: 'completed' };
};

const run = async (turn: VerbTurn, task: TurnTask, signal: AbortSignal): Promise<TurnEnd> => {
  const { persona, model } = choose(turn);
  if (model === undefined) {
    const name = turn.model ?? ownModel;
    const message = name === undefined ? 'no model is set for this session' : `the model ${name} is not available here`;
    return { kind: 'failed', code: 'unknown_model', message };
  }
  link.send({ kind: 'model', model });
  if (task.kind === 'compact') return compact(persona, model, signal);
  const isCommand = task.kind === 'command';
  if (isCommand && !root.loader.getPrompts().prompts.some((template) => template.name === task.name)) {
    return { kind: 'failed', code: 'unknown', message: `there is no command ${task.name}` };
  }
  const text = isCommand ? `/${task.name} ${task.arguments}`.trim() : task.text;
  const { messageId } = turn;
  return root.prompt({ text, expand: isCommand, messageId, persona, model, variant: persona.variant }, signal);
};

const turns = new Map<string, AbortController>();

const onTurn = async (turn: VerbTurn, task: TurnTask): Promise<void> => {
  const controller = new AbortController();
  // A turn keeps the rules that it began with. Source: A60.
  rules = nextRules;
  turns.set(turn.turnId, controller);
  let end: TurnEnd;
  try {
    end = await run(turn, task, controller.signal);
  } catch (error) {
    link.log('error', `a turn broke: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    end = { kind: 'failed', code: 'unknown', message: error instanceof Error ? error.message : String(error) };
  }
  turns.delete(turn.turnId);
  link.send({ kind: 'turn-ended', turnId: turn.turnId, end });
};

port.on('message', (message: ToWorker) => {
  if (link.receive(message)) return;
  if (message.kind === 'turn') void onTurn(message.turn, message.task);
  else if (message.kind === 'abort') turns.get(message.turnId)?.abort();
  else if (message.kind === 'rules') nextRules = message.rules;
});

const extensions = root.loader.getExtensions();
link.send({
  kind: 'ready',
  version: pi.VERSION,
  model: ownModel ?? null,
  extensions: {
    loaded: extensions.extensions.map(({ path }) => path).filter((path) => !path.startsWith('<')),
    failed: [
      ...start.project.failed,
      ...extensions.errors.map(({ path, error }) => ({ source: path, reason: error.slice(0, 500) })),
    ],
  },
  commands: root.loader.getPrompts().prompts.map(({ name, description }) => ({ name, description })),
  children: children.all().map(({ id, title }) => ({ id, title })),
  discarded: root.discarded,
});
