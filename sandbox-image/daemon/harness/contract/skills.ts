// Skills as a harness gets them: folders that are checked and complete, and which agent may use which.
// Must not know files or any single harness. Source: A43, A102, A128, A129.
import { decidePermission, type PermissionAction, type PermissionRules } from '#schema/rules/permission.ts';
import type { CompiledAgent } from '#schema/wire/claim.ts';

/** A skill. `directory`: absolute path of the folder with its SKILL.md. `managed`: one of Beeuni's own, `beeuni-*`. */
export type Skill = Readonly<{ name: string; description: string; directory: string; managed: boolean }>;

type Rules = Readonly<Record<string, PermissionAction>>;

/** Names of Beeuni's own skills begin so; no skill of a project can take such a name. Source: A129. */
export const MANAGED_PREFIX = 'beeuni-';

/**
 * The rule set for skills of an agent, weakest first: what its grant gives, Beeuni's own in any case, and on top what
 * its own rules ask or deny. A grant of `all` without own rules gives undefined. Source: A102, A129.
 */
export const skillRulesOf = (
  agent: Pick<CompiledAgent, 'permission' | 'skills'>,
): PermissionAction | Rules | undefined => {
  const { permission, skills } = agent;
  const own = typeof permission === 'object' ? (permission['skill'] ?? permission['*']) : permission;
  if (skills === 'all' || own === 'deny') return own;
  const ruled = own === undefined ? undefined : { skill: own };
  const actionOf = (name: string) => decidePermission(ruled, { keys: ['skill'], subjects: [name] });
  // What the agent's own rules allow or ask about never widens its grant; what they deny always holds.
  const denied = typeof own === 'object' ? Object.entries(own).filter(([, action]) => action === 'deny') : [];
  return {
    '*': 'deny',
    [`${MANAGED_PREFIX}*`]: actionOf(MANAGED_PREFIX),
    ...Object.fromEntries((skills === 'none' ? [] : skills).map((name) => [name, actionOf(name)])),
    ...Object.fromEntries(denied),
  };
};

/** What the rules say of one skill. */
export const skillAction = (agent: Pick<CompiledAgent, 'permission' | 'skills'>, name: string): PermissionAction => {
  const rules = skillRulesOf(agent);
  return decidePermission(rules === undefined ? undefined : { skill: rules }, { keys: ['skill'], subjects: [name] });
};

/** The rules of an agent with its skills grant in them. Source: A102. */
export const rulesOf = (
  agent: Pick<CompiledAgent, 'permission' | 'skills'> | undefined,
): PermissionRules | undefined => {
  const skill = agent === undefined ? undefined : skillRulesOf(agent);
  if (agent === undefined || skill === undefined) return agent?.permission;
  return typeof agent.permission === 'string' ? { '*': agent.permission, skill } : { ...agent.permission, skill };
};
