// Whether a call may run: the rules of the agent and, for a subagent, of the session's agent too; what a rule wants
// asked is asked once per call; what holds for longer than a call is the broker's. Must not know any single harness, only
// the names that tools and their arguments have in one of them.
// Source: A41, A52, A53, A81, A116 to A121, A127.
import { randomBytes } from 'node:crypto';
import { relative, resolve, sep } from 'node:path';
import {
  commandsOf,
  decidePermission,
  isAlwaysDenied,
  type PermissionAction,
  type PermissionRules,
  strictest,
} from '#schema/rules/permission.ts';
import type { HumanAnswer, HumanRequest } from '../contract/adapter.ts';
import type { Skill } from '../contract/skills.ts';
import { permissionQuestionOf } from '../contract/tools.ts';

/** One call of a tool. */
export type ToolUse = Readonly<{ tool: string; callId: string; input: Readonly<Record<string, unknown>> }>;

/** Yes, or no with what the model may read; `final` also ends the turn. */
export type Verdict = Readonly<{ allowed: true }> | Readonly<{ allowed: false; reason: string; final: boolean }>;

/** What a call needs leave for. */
type Need = Readonly<{
  permission: string;
  keys: readonly string[];
  subjects: readonly string[];
  always: readonly string[];
}>;

const CAPABILITY: Readonly<Record<string, string>> = {
  write: 'edit',
  multiedit: 'edit',
  apply_patch: 'edit',
  find: 'glob',
  ls: 'list',
};
const FILE_TOOLS: ReadonlySet<string> = new Set(['read', 'edit', 'write', 'multiedit', 'ls', 'list']);
const SEARCH_TOOLS: ReadonlySet<string> = new Set(['grep', 'glob', 'find']);

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const isBelow = (folder: string, path: string): boolean => path === folder || path.startsWith(folder + sep);

/**
 * The path as rules name it, relative to the workspace or absolute outside of it: as it was asked for, and where it leads
 * once links are followed. Both count, so that no link and no other name of a file is a way around a rule.
 */
const pathSubjects = (ports: Pick<PermissionPorts, 'workspace' | 'realPath'>, path: string) => {
  const { workspace } = ports;
  const whole = resolve(workspace, path);
  const real = ports.realPath(whole);
  const realWorkspace = ports.realPath(workspace);
  const leads = isBelow(realWorkspace, real) ? relative(realWorkspace, real) || '.' : real;
  const isNamedInside = isBelow(workspace, whole);
  const subjects = [...new Set([...(isNamedInside ? [relative(workspace, whole) || '.'] : []), leads])];
  return { subjects, real, outside: !isNamedInside || !isBelow(realWorkspace, real) };
};

const keysOf = (tool: string): readonly string[] => {
  const capability = CAPABILITY[tool];
  return capability === undefined ? [tool] : [tool, capability];
};

/** What a call says about the world outside of the workspace: a skill that is read there, or anything else. */
const outsideNeed = (skills: readonly Skill[], path: string): Need => {
  const skill = skills.find(({ directory }) => isBelow(directory, path));
  const [permission, subject] = skill === undefined ? ['external_directory', path] : ['skill', skill.name];
  return { permission, keys: [permission], subjects: [subject], always: [subject] };
};

/** All that a call needs leave for: the tool itself, and the world outside of the workspace. Source: A116, A117. */
const needsOf = (
  ports: Pick<PermissionPorts, 'workspace' | 'realPath' | 'skills' | 'ownTools'>,
  use: ToolUse,
): readonly Need[] => {
  const { input, tool } = use;
  if (ports.ownTools.has(tool)) {
    const { keys, subjects } = permissionQuestionOf(tool, input, true);
    return [{ permission: keys.at(-1) ?? tool, keys, subjects, always: subjects.length === 0 ? ['*'] : subjects }];
  }
  const keys = keysOf(tool);
  const permission = keys.at(-1) ?? tool;
  if (tool === 'bash') {
    const subjects = commandsOf(text(input['command']));
    const always = [...new Set(subjects.map((command) => `${command.split(/\s+/)[0]} *`))];
    return [{ permission, keys, subjects, always }];
  }
  if (tool === 'task') {
    const subjects = [text(input['subagent_type'])].filter(Boolean);
    return [{ permission, keys, subjects, always: subjects }];
  }
  if (tool === 'skill') {
    const subjects = [text(input['name'])].filter(Boolean);
    return [{ permission, keys, subjects, always: subjects }];
  }
  const isFile = FILE_TOOLS.has(tool);
  const isSearch = SEARCH_TOOLS.has(tool);
  if (!isFile && !isSearch) return [{ permission, keys, subjects: [], always: ['*'] }];
  const asked = pathSubjects(ports, text(input['path']) || text(input['filePath']) || '.');
  const elsewhere = asked.outside ? [outsideNeed(ports.skills, asked.real)] : [];
  const subjects = isFile ? asked.subjects : [text(input['pattern'])].filter(Boolean);
  return [...elsewhere, { permission, keys, subjects, always: isFile ? subjects : ['*'] }];
};

/** Ports of the judge. `rules`: of every agent whose rules count now, the own one first. */
export type PermissionPorts = Readonly<{
  workspace: string;
  /** The path without links, as far as it exists. */
  realPath: (path: string) => string;
  skills: readonly Skill[];
  /** Names of the tool host's tools. */
  ownTools: ReadonlySet<string>;
  threadId: string;
  rules: () => readonly (PermissionRules | undefined)[];
  ask: (request: HumanRequest, signal: AbortSignal | undefined) => Promise<HumanAnswer>;
  messageOf: (callId: string) => string | undefined;
}>;

/** Judges calls of one conversation. */
export type Permissions = Readonly<{
  judge: (use: ToolUse, signal: AbortSignal | undefined) => Promise<Verdict>;
  /** Whether a tool can never run, so that it is not shown. Source: A111. */
  isHidden: (tool: string) => boolean;
}>;

const ALLOWED: Verdict = { allowed: true };
const MAX_REMEMBERED = 256;

/** A judge. The same call with the same arguments is asked about once, however often it is judged. */
export const createPermissions = (ports: PermissionPorts): Permissions => {
  const judged = new Map<string, Verdict>();

  const decide = (need: Need, subjects: readonly string[]): PermissionAction =>
    strictest(ports.rules().map((rules) => decidePermission(rules, { keys: need.keys, subjects })));
  /** The subjects that a human is asked about; those that a rule allows are left out. */
  const askedOf = (need: Need): readonly string[] =>
    need.subjects.filter((subject) => decide(need, [subject]) === 'ask');

  const ask = async (need: Need, use: ToolUse, signal: AbortSignal | undefined): Promise<Verdict> => {
    const messageId = ports.messageOf(use.callId);
    const answer = await ports.ask(
      {
        kind: 'permission',
        id: `perm_${randomBytes(12).toString('hex')}`,
        threadId: ports.threadId,
        data: {
          permission: need.permission,
          patterns: askedOf(need),
          metadata: use.input,
          always: need.always,
          ...(messageId === undefined ? {} : { tool: { messageId, callId: use.callId } }),
        },
      },
      signal,
    );
    if (answer.kind !== 'permission' || answer.reply === 'reject') {
      const message = answer.kind === 'permission' ? answer.message : null;
      // Without a word from the human there is nothing to go on with.
      return { allowed: false, reason: message ?? 'The user did not allow this call.', final: message === null };
    }
    return ALLOWED;
  };

  const judgeNew = async (use: ToolUse, signal: AbortSignal | undefined): Promise<Verdict> => {
    const needs = needsOf(ports, use).map((need) => ({ need, action: decide(need, need.subjects) }));
    const denied = needs.find(({ action }) => action === 'deny');
    if (denied !== undefined) {
      const { permission, subjects } = denied.need;
      const reason = `The rule for "${permission}" of this project's agent denies ${subjects[0] ?? use.tool}.`;
      return { allowed: false, reason, final: false };
    }
    for (const { need, action } of needs) {
      if (action !== 'ask') continue;
      const verdict = await ask(need, use, signal);
      if (!verdict.allowed) return verdict;
    }
    return ALLOWED;
  };

  return {
    judge: async (use, signal) => {
      const key = `${use.callId} ${use.tool} ${JSON.stringify(use.input)}`;
      const known = judged.get(key);
      if (known !== undefined) return known;
      const verdict = await judgeNew(use, signal);
      judged.set(key, verdict);
      const [oldest] = judged.keys();
      if (judged.size > MAX_REMEMBERED && oldest !== undefined) judged.delete(oldest);
      return verdict;
    },
    // A tool whose capability depends on the call is shown as soon as one of its calls can run.
    isHidden: (tool) => {
      const keys = ports.ownTools.has(tool) ? permissionQuestionOf(tool, { command: 'view' }, true).keys : keysOf(tool);
      return ports.rules().some((rules) => isAlwaysDenied(rules, keys));
    },
  };
};
