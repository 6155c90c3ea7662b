// OpenCode's configuration from what the claim said: known keys only, since an unknown one is sent to the model and a
// wrongly typed one makes every route answer 400. Pure. Must not know files or processes. Source: harness-runtimes §2.5.
import type { ClaimedModel, CompiledAgent } from '#schema/wire/claim.ts';
import type { HarnessSession } from '../contract/adapter.ts';
import { pluginSource } from './plugin-source.ts';

/** Name of the one provider that OpenCode knows. */
export const PROVIDER_ID = 'beeuni';
/** Variable of the child's environment that holds the loopback token. */
export const TOKEN_VARIABLE = 'BEEUNI_RELAY_TOKEN';

/** A file below the configuration folder. */
export type ConfigFile = Readonly<{ path: string; content: string }>;

/** All that is written before a start. `content`: JSON for OPENCODE_CONFIG_CONTENT, which no file can override. */
export type OpencodeConfig = Readonly<{ files: readonly ConfigFile[]; content: string; agents: readonly string[] }>;

/** A stream that is silent for so long is broken whatever the gateway thinks; the gateway's own limits are shorter. */
const SILENCE_LIMIT_MS = 900_000;

/** Rules below every agent's own: the sandbox is the boundary, so nothing is asked that no rule asks for. Source: D15, A118. */
const BASE_PERMISSION = {
  '*': 'allow',
  external_directory: 'allow',
  doom_loop: 'allow',
  webfetch: 'deny',
  plan_enter: 'deny',
  plan_exit: 'deny',
} as const;

type Rules = Record<string, unknown>;

/** The permission of an agent with its skills grant in it. Source: A101, A102. */
export const permissionOf = (agent: Pick<CompiledAgent, 'permission' | 'skills'>): Rules => {
  const own: Rules = typeof agent.permission === 'string' ? { '*': agent.permission } : { ...agent.permission };
  if (agent.skills === 'none') own['skill'] = 'deny';
  else if (agent.skills !== 'all') {
    own['skill'] = { '*': 'deny', ...Object.fromEntries(agent.skills.map((name) => [name, 'allow'])) };
  }
  return own;
};

const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*(\/[A-Za-z0-9][A-Za-z0-9_-]*)*$/;

/** One agent as a file. Values are JSON, which YAML contains; the prompt is the body, where nothing is expanded. */
const agentFile = (agent: CompiledAgent, knownModels: ReadonlySet<string>): ConfigFile => {
  const keys: Rules = {
    description: agent.description,
    mode: agent.mode,
    model: agent.model !== undefined && knownModels.has(agent.model) ? `${PROVIDER_ID}/${agent.model}` : undefined,
    variant: agent.variant,
    temperature: agent.temperature,
    top_p: agent.topP,
    steps: agent.steps,
    hidden: agent.hidden,
    permission: permissionOf(agent),
  };
  const lines = Object.entries(keys)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return { path: `agents/${agent.name}.md`, content: `---\n${lines.join('\n')}\n---\n${agent.prompt}\n` };
};

const modelEntry = (model: ClaimedModel): Rules => ({
  name: model.name,
  limit: { context: model.contextWindowTokens, output: model.maxOutputTokens },
  reasoning: model.reasoning,
  tool_call: true,
  attachment: model.input.includes('image'),
  modalities: { input: model.input, output: ['text'] },
});

/** Models of the session, each once. */
export const modelsOf = (session: Pick<HarnessSession, 'model' | 'models'>): readonly ClaimedModel[] => {
  const all = session.model === null ? session.models : [session.model, ...session.models];
  return [...new Map(all.map((model) => [model.name, model])).values()];
};

/** The whole configuration. Agents whose name cannot be a file name are left out. */
export const opencodeConfig = (
  input: Readonly<{
    session: HarnessSession;
    modelBaseUrl: string;
    environmentUrl: string;
    rulesPath: string | null;
    /** Where the files will be, with symbolic links resolved. */
    configDirectory: string;
  }>,
): OpencodeConfig => {
  const { session } = input;
  const models = modelsOf(session);
  const names = new Set(models.map((model) => model.name));
  const agents = session.agents.filter((agent) => AGENT_NAME.test(agent.name));
  const file: Rules = {
    instructions: input.rulesPath === null ? [] : [input.rulesPath],
    permission: { ...BASE_PERMISSION, ...(session.unattended ? { question: 'deny' } : {}) },
  };
  const model = session.model === null ? {} : defaultModels(session.model.name);
  const primary = agents.some((agent) => agent.name === session.agent && agent.mode !== 'subagent');
  const content: Rules = {
    autoupdate: false,
    share: 'disabled',
    lsp: false,
    formatter: false,
    enabled_providers: [PROVIDER_ID],
    ...model,
    ...(primary ? { default_agent: session.agent } : {}),
    provider: {
      [PROVIDER_ID]: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Beeuni',
        options: {
          baseURL: input.modelBaseUrl,
          apiKey: `{env:${TOKEN_VARIABLE}}`,
          chunkTimeout: SILENCE_LIMIT_MS,
          headerTimeout: SILENCE_LIMIT_MS,
        },
        models: Object.fromEntries(models.map((each) => [each.name, modelEntry(each)])),
      },
    },
  };
  return {
    files: [
      { path: 'opencode.json', content: `${JSON.stringify(file, null, 2)}\n` },
      { path: 'plugins/beeuni.js', content: pluginSource({ ...input, tokenVariable: TOKEN_VARIABLE }) },
      ...agents.map((agent) => agentFile(agent, names)),
    ],
    content: JSON.stringify(content),
    agents: agents.map((agent) => agent.name),
  };
};

const defaultModels = (name: string): Rules => ({
  model: `${PROVIDER_ID}/${name}`,
  small_model: `${PROVIDER_ID}/${name}`,
});
