// Who answers a prompt: an agent with its prompt, rules, tools and sampling, the session's own or a subagent. Pure.
// Must not know Pi. Source: A39, A42, A43, A104, A111, A127.
import type { PermissionRules } from '#schema/rules/permission.ts';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import { rulesOf, skillAction } from '../../contract/skills.ts';
import type { WorkerStart } from '../protocol.ts';
import type { KeptImages } from './images.ts';

/** Name of the one provider that Pi knows. */
export const PROVIDER_ID = 'beeuni';

/** An agent as a conversation runs on it. `tools`: names of the tool host that it sees; null: all. */
export type Persona = Readonly<{
  name: string | null;
  prompt: string;
  model: string | undefined;
  variant: string | undefined;
  rules: readonly (PermissionRules | undefined)[];
  tools: ReadonlySet<string> | null;
  seesSkill: (name: string) => boolean;
  temperature: number | undefined;
  topP: number | undefined;
  steps: number | undefined;
  keptImages: KeptImages;
}>;

/** A subagent that the `task` tool offers. */
export type Subagent = Readonly<{ name: string; description: string; persona: (parent: Persona) => Persona }>;

const DEFAULT_PROMPT = `You are a coding agent. You work in a git repository with the tools you are given, for a user who reads your last
message. Look before you change something, keep changes as small as the task allows, check your work, and say in the end what you did.`;

const GENERAL_PROMPT = `You are a subagent. Another agent gave you one task. Do it completely with the tools you are given, then answer with what
the other agent needs to know; it sees nothing but your last message.`;

const EXPLORE_PROMPT = `You are a subagent that only looks. Find what was asked for by searching and reading, change nothing, and answer with the
findings: paths, lines and what they mean. The agent that asked sees nothing but your last message.`;

/** What `explore` may do: look. Source: A42. */
const EXPLORE_RULES: PermissionRules = {
  '*': 'deny',
  read: 'allow',
  grep: 'allow',
  glob: 'allow',
  list: 'allow',
  websearch: 'allow',
  webfetch: 'allow',
};

/** Only a `deny` hides a skill. Source: A43, A129. */
const skillsOf = (agent: CompiledAgent | undefined): ((name: string) => boolean) =>
  agent === undefined ? () => true : (name) => skillAction(agent, name) !== 'deny';

const toolsOf = (start: WorkerStart, name: string | null): ReadonlySet<string> | null => {
  const visible = start.visibleTools[name ?? ''];
  return visible === undefined ? null : new Set(visible);
};

/** Where pixels are off or to be described, none are shown: this harness describes none. Source: 40-settings B7, B8. */
const keptImagesOf = (agent: CompiledAgent | undefined): KeptImages => {
  const { mode, keepImages } = agent?.vision ?? { mode: 'pixels', keepImages: 0 };
  if (mode !== 'pixels') return 0;
  return keepImages === 0 ? undefined : keepImages;
};

const fewer = (one: KeptImages, other: KeptImages): KeptImages =>
  one === undefined ? other : other === undefined ? one : Math.min(one, other);

const personaOf = (start: WorkerStart, agent: CompiledAgent | undefined): Persona => ({
  name: agent?.name ?? null,
  prompt: agent === undefined || agent.prompt.trim() === '' ? DEFAULT_PROMPT : agent.prompt,
  model: agent?.model,
  variant: agent?.variant,
  rules: [rulesOf(agent)],
  tools: toolsOf(start, agent?.name ?? null),
  seesSkill: skillsOf(agent),
  temperature: agent?.temperature,
  topP: agent?.topP,
  steps: agent?.steps,
  keptImages: keptImagesOf(agent),
});

/** The agent for a prompt that names one, or the session's own; `refused` when the named one cannot run it. */
export const choosePersona = (
  start: WorkerStart,
  wanted: string | null,
): Readonly<{ persona: Persona; refused: boolean }> => {
  const primary = (name: string | null) =>
    start.agents.find((agent) => agent.name === name && agent.mode !== 'subagent');
  const named = wanted === null ? undefined : primary(wanted);
  return { persona: personaOf(start, named ?? primary(start.agent)), refused: wanted !== null && named === undefined };
};

const intersect = (one: ReadonlySet<string> | null, other: ReadonlySet<string> | null): ReadonlySet<string> | null =>
  one === null ? other : other === null ? one : new Set([...one].filter((name) => other.has(name)));

/** A child is bound by its own rules and by those of who called it. Source: A111, A127. */
const below = (parent: Persona, child: Persona): Persona => ({
  ...child,
  rules: [...child.rules, ...parent.rules],
  tools: intersect(child.tools, parent.tools),
  keptImages: fewer(child.keptImages, parent.keptImages),
});

const builtIn =
  (name: string, prompt: string, rules: PermissionRules | undefined) =>
  (parent: Persona): Persona =>
    below(parent, {
      ...parent,
      name,
      prompt,
      rules: [rules],
      steps: undefined,
      temperature: undefined,
      topP: undefined,
    });

/** The subagents of a session: two of our own and the project's, which win over ours of the same name. */
export const subagentsOf = (start: WorkerStart): readonly Subagent[] => {
  const own = start.agents.filter((agent) => agent.mode !== 'primary');
  const all: Subagent[] = [
    {
      name: 'general',
      description: 'Does a task of several steps on its own and reports the result.',
      persona: builtIn('general', GENERAL_PROMPT, undefined),
    },
    {
      name: 'explore',
      description: 'Searches and reads the repository without changing it, and reports what it found.',
      persona: builtIn('explore', EXPLORE_PROMPT, EXPLORE_RULES),
    },
    ...own.map((agent) => ({
      name: agent.name,
      description: agent.description ?? '',
      persona: (parent: Persona) => below(parent, personaOf(start, agent)),
    })),
  ];
  return [...new Map(all.map((subagent) => [subagent.name, subagent])).values()];
};
