// OpenCode's configuration from what the claim said: known keys only, since an unknown one is sent to the model and a
// wrongly typed one makes every route answer 400. Pure. Must not know files or processes. Source: harness-runtimes §2.5.

import { decidePermission, type PermissionAction, type PermissionRule } from '#schema/rules/permission.ts';
import type { ModelRole } from '#schema/settings/roles.ts';
import type { ClaimedModel, CompiledAgent } from '#schema/wire/claim.ts';
import type { HarnessSession } from '../contract/adapter.ts';
import { skillRulesOf } from '../contract/skills.ts';
import { permissionQuestionOf, type ToolHost, UNASKABLE_TOOLS } from '../contract/tools.ts';
import { OWN_TOOLS, pluginSource } from './plugin-source.ts';
import type { ProjectDirectory } from './project-directory.ts';

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

/** Patterns from the weakest to the strongest, since of two that match OpenCode takes the later one. Source: A117. */
const ordered = (rule: PermissionRule): PermissionRule => {
  if (typeof rule !== 'object') return rule;
  const weight = (pattern: string): number => (pattern === '*' ? 0 : pattern.length);
  return Object.fromEntries(Object.entries(rule).sort(([one], [other]) => weight(one) - weight(other)));
};

type Tools = Pick<ToolHost, 'specs' | 'visibleTo'>;

/**
 * Rules for the tools of the host: one that the agent is not granted is denied, and so is one that OpenCode cannot ask
 * for when its rule says `ask`. `agent` undefined stands for OpenCode's own agents. Source: A40, A52, A111.
 */
const toolRules = (
  agent: Pick<CompiledAgent, 'name' | 'permission'> | undefined,
  tools: Tools,
): Readonly<Record<string, PermissionAction>> => {
  const visible = tools.visibleTo(agent?.name ?? null);
  return Object.fromEntries(
    tools.specs.flatMap(({ name }): [string, PermissionAction][] => {
      if (!visible.has(name)) return [[name, 'deny']];
      if (!UNASKABLE_TOOLS.includes(name)) return [];
      const action = decidePermission(agent?.permission, permissionQuestionOf(name, {}, false));
      return [[name, action === 'allow' ? 'allow' : 'deny']];
    }),
  );
};

/** The permission of an agent with its grants of skills and tools in it. Source: A40, A101, A102. */
export const permissionOf = (agent: Pick<CompiledAgent, 'name' | 'permission' | 'skills'>, tools: Tools): Rules => {
  const own = typeof agent.permission === 'string' ? { '*': agent.permission } : { ...agent.permission };
  const { '*': rest, ...named } = own;
  const rules = Object.entries(named).map(([key, rule]) => [key, ordered(rule)] as const);
  const skill = skillRulesOf(agent);
  return {
    ...(rest === undefined ? {} : { '*': ordered(rest) }),
    ...Object.fromEntries(rules),
    skill: ordered(skill ?? 'allow'),
    ...toolRules(agent, tools),
  };
};

const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*(\/[A-Za-z0-9][A-Za-z0-9_-]*)*$/;

/** One agent as a file. Values are JSON, which YAML contains; the prompt is the body, where nothing is expanded. */
const agentFile = (agent: CompiledAgent, knownModels: ReadonlySet<string>, tools: Tools): ConfigFile => {
  const keys: Rules = {
    description: agent.description,
    mode: agent.mode,
    model: agent.model !== undefined && knownModels.has(agent.model) ? `${PROVIDER_ID}/${agent.model}` : undefined,
    variant: agent.variant,
    temperature: agent.temperature,
    top_p: agent.topP,
    steps: agent.steps,
    options: agent.options,
    hidden: agent.hidden,
    permission: permissionOf(agent, tools),
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
  // Without it OpenCode drops the temperature of an agent (measured, 1.18.33). Source: A39.
  temperature: true,
  tool_call: true,
  attachment: model.input.includes('image'),
  modalities: { input: model.input, output: ['text'] },
  // Named tiers take the place of OpenCode's own guess; one that a model lacks is dropped by the gateway. Source: A216.
  ...(model.variants === undefined
    ? {}
    : { variants: Object.fromEntries(model.variants.map((tier) => [tier, { reasoningEffort: tier }])) }),
});

/** OpenCode runs nothing, no shell command either, without a model; this one is in no list, so no turn is sent to it. */
const NO_MODEL: Rules = { none: { name: 'no model is registered' } };

/** Models of the session, each once. */
export const modelsOf = (session: Pick<HarnessSession, 'model' | 'models'>): readonly ClaimedModel[] => {
  const all = session.model === null ? session.models : [session.model, ...session.models];
  return [...new Map(all.map((model) => [model.name, model])).values()];
};

/** The model of a role, if the session has it: OpenCode compacts itself, and its small model writes titles. Source: 40-settings B2, J5. */
export const modelOfRole = (session: HarnessSession, role: ModelRole): string | undefined => {
  const name = session.roles?.find((each) => each.role === role)?.model ?? undefined;
  return name !== undefined && modelsOf(session).some((model) => model.name === name) ? name : undefined;
};

/** The whole configuration. Agents whose name cannot be a file name are left out. */
export const opencodeConfig = (
  input: Readonly<{
    session: HarnessSession;
    modelBaseUrl: string;
    environmentUrl: string;
    toolsUrl: string;
    judgeUrl: string;
    tools: Tools;
    /** What the project's folder for OpenCode brings. Source: A69. */
    project: Pick<ProjectDirectory, 'settings' | 'files' | 'ownTools'>;
    /** Absolute paths of the rules; one that is missing counts for nothing. */
    rulesPaths: readonly string[];
    /** Where the files will be, with symbolic links resolved. */
    configDirectory: string;
  }>,
): OpencodeConfig => {
  const { session } = input;
  const models = modelsOf(session);
  const names = new Set(models.map((model) => model.name));
  const agents = session.agents.filter((agent) => AGENT_NAME.test(agent.name));
  const own = agents.find((agent) => agent.name === session.agent);
  const skill = own && skillRulesOf(own);
  const file: Rules = {
    ...input.project.settings,
    instructions: input.rulesPaths,
    permission: {
      ...BASE_PERMISSION,
      ...(skill === undefined ? {} : { skill: ordered(skill) }),
      ...toolRules(own, input.tools),
      ...(session.unattended ? { question: 'deny' } : {}),
    },
  };
  const model = session.model === null ? {} : defaultModels(session.model.name, modelOfRole(session, 'title'));
  const compaction = modelOfRole(session, 'compaction');
  const primary = agents.some((agent) => agent.name === session.agent && agent.mode !== 'subagent');
  const content: Rules = {
    autoupdate: false,
    share: 'disabled',
    lsp: false,
    formatter: false,
    enabled_providers: [PROVIDER_ID],
    ...model,
    ...(primary ? { default_agent: session.agent } : {}),
    agent: {
      // OpenCode's own agent only looks; the rule below every agent's would let it write. Source: A42.
      ...(agents.some((agent) => agent.name === 'explore') ? {} : { explore: { permission: { edit: 'deny' } } }),
      ...(compaction === undefined ? {} : { compaction: { model: `${PROVIDER_ID}/${compaction}` } }),
    },
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
        models:
          models.length === 0 ? NO_MODEL : Object.fromEntries(models.map((each) => [each.name, modelEntry(each)])),
      },
    },
  };
  return {
    files: [
      { path: 'opencode.json', content: `${JSON.stringify(file, null, 2)}\n` },
      ...input.project.files,
      {
        path: 'plugins/beeuni.js',
        content: pluginSource({
          ...input,
          tools: input.tools.specs,
          ownTools: input.project.ownTools.map((name) => `${input.configDirectory}/${OWN_TOOLS}/${name}`),
          tokenVariable: TOKEN_VARIABLE,
        }),
      },
      ...agents.map((agent) => agentFile(agent, names, input.tools)),
    ],
    content: JSON.stringify(content),
    agents: agents.map((agent) => agent.name),
  };
};

const defaultModels = (name: string, small: string = name): Rules => ({
  model: `${PROVIDER_ID}/${name}`,
  small_model: `${PROVIDER_ID}/${small}`,
});
