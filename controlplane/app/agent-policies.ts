// Image policies per project and agent: read, changed under compare-and-set, and told to daemons at the claim.
// Must not know SQL or HTTP. Source: 40-settings B7 to B11.
import { InvalidError } from '#base/errors.ts';
import type { Project } from '#schema/resources/project.ts';
import type { AgentPolicyChange, AgentPolicyView } from '#schema/rest/agent-policies.ts';
import { didYouMean } from '#schema/rules/nearest-names.ts';
import {
  AGENT_POLICY_FIELDS,
  type AgentPolicy,
  type AgentPolicyField,
  DEFAULT_AGENT_POLICY,
  type SavedPolicy,
  visionModeOf,
} from '#schema/settings/agent-policy.ts';
import { type Expected, isExpected, staleError } from './if-match.ts';
import type { ProjectStore } from './project-ports.ts';
import type { SettingsAuthor } from './settings-ports.ts';

/** A stored policy; `revision` 0 is one that was never changed. */
export type StoredPolicy = Readonly<{ agent: string; saved: SavedPolicy; revision: number }>;

/** Which policy, with the project's names for the audit. */
export type PolicyKey = Readonly<{ projectUid: string; namespace: string; project: string; agent: string }>;

/** The table of policies. Errors of all: UnavailableError `database_unavailable`. */
export type AgentPolicyStore = Readonly<{
  list: (projectUid: string) => Promise<readonly StoredPolicy[]>;
  find: (projectUid: string, agent: string) => Promise<StoredPolicy>;
  /**
   * Changes a policy under its lock, with an audit row per changed field. What `decide` throws changes nothing; undefined
   * changes nothing either. Undefined: there is no such project.
   */
  change: (
    key: PolicyKey,
    author: SettingsAuthor,
    decide: (stored: StoredPolicy) => SavedPolicy | undefined,
  ) => Promise<StoredPolicy | undefined>;
}>;

/** What the functions need. */
export type AgentPoliciesPorts = Readonly<{ store: AgentPolicyStore; projects: Pick<ProjectStore, 'find'> }>;

/** The functions. Errors of both: InvalidError `unknown_agent`, UnavailableError. */
export type AgentPoliciesApp = Readonly<{
  get: (project: Project, agent: string) => Promise<AgentPolicyView>;
  /** Errors also: InvalidError `invalid_setting`, ConflictError `precondition_failed`. */
  change: (
    project: Project,
    agent: string,
    change: AgentPolicyChange,
    expected: Expected,
    author: SettingsAuthor,
  ) => Promise<AgentPolicyView>;
}>;

/** The policy that counts. */
export const policyOf = (saved: SavedPolicy): AgentPolicy => ({
  vision: saved.vision ?? DEFAULT_AGENT_POLICY.vision,
  vision_describe: saved.vision_describe ?? DEFAULT_AGENT_POLICY.vision_describe,
  vision_keep_images: saved.vision_keep_images ?? DEFAULT_AGENT_POLICY.vision_keep_images,
});

/** The saved fields after a change: an absent one keeps, null resets. */
export const savedAfter = (before: SavedPolicy, change: AgentPolicyChange): SavedPolicy => {
  const after = <F extends AgentPolicyField>(field: F): SavedPolicy[F] =>
    change[field] === undefined ? before[field] : ((change[field] ?? null) as SavedPolicy[F]);
  return {
    vision: after('vision'),
    vision_describe: after('vision_describe'),
    vision_keep_images: after('vision_keep_images'),
  };
};

/** Refuses a limit of screenshots where no pixels are. Errors: InvalidError `invalid_setting`. Source: B10. */
export const checkPolicy = (policy: AgentPolicy): void => {
  const mode = visionModeOf(policy);
  if (policy.vision_keep_images === 0 || mode === 'pixels') return;
  const why = mode === 'off' ? 'vision is false' : 'vision_describe is true';
  throw new InvalidError(
    'invalid_setting',
    `body.vision_keep_images must be 0, because ${why}: only pixels can be kept; send 0 or null with it`,
    { details: { problems: [{ path: 'body.vision_keep_images', message: `must be 0 while ${why}`, limit: 0 }] } },
  );
};

const viewOf = ({ agent, saved, revision }: StoredPolicy): AgentPolicyView => {
  const policy = policyOf(saved);
  return {
    ...policy,
    agent,
    revision,
    mode: visionModeOf(policy),
    saved: AGENT_POLICY_FIELDS.filter((field) => saved[field] !== null),
  };
};

/** Makes the functions. */
export const makeAgentPolicies = ({ store, projects }: AgentPoliciesPorts): AgentPoliciesApp => {
  const requireAgent = async (project: Project, agent: string): Promise<PolicyKey> => {
    const { uid, namespace, name } = project.metadata;
    const config = (await projects.find(uid))?.config;
    const names = config?.agents.map((known) => known.name) ?? [];
    if (!names.includes(agent)) {
      const shown = agent.slice(0, 64);
      const why =
        config === undefined
          ? `project ${name} has no valid manifest yet, so no agent ${shown}`
          : `the manifest of project ${name} declares no enabled agent ${shown}${didYouMean(agent, names)}`;
      throw new InvalidError('unknown_agent', why, { details: { field: 'agent' } });
    }
    return { projectUid: uid, namespace, project: name, agent };
  };

  return {
    get: async (project, agent) => {
      const key = await requireAgent(project, agent);
      return viewOf(await store.find(key.projectUid, agent));
    },
    change: async (project, agent, change, expected, author) => {
      const key = await requireAgent(project, agent);
      let stale: StoredPolicy | undefined;
      const stored = await store.change(key, author, (before) => {
        if (!isExpected(expected, before.revision)) {
          stale = before;
          return undefined;
        }
        const after = savedAfter(before.saved, change);
        checkPolicy(policyOf(after));
        return AGENT_POLICY_FIELDS.some((field) => after[field] !== before.saved[field]) ? after : undefined;
      });
      if (stale !== undefined) {
        throw staleError('the policy', viewOf(stale));
      }
      if (stored === undefined) throw new InvalidError('unknown_agent', `project ${key.project} is gone`);
      return viewOf(stored);
    },
  };
};
