// Handlers of agent policies and of a project's effective values. Must not know their rules. Source: 40-settings B.2, D19.
import type { Project } from '#schema/resources/project.ts';
import type {
  getAgentPolicyRoute,
  getProjectEffectiveRoute,
  ProjectEffective,
  putAgentPolicyRoute,
} from '#schema/rest/agent-policies.ts';
import type { AgentPoliciesApp } from '../app/agent-policies.ts';
import { callerName } from '../app/caller.ts';
import { parseIfMatch } from '../app/if-match.ts';
import { type Fetch, requireProject } from './find-objects.ts';
import type { Handler } from './handler.ts';

/** What the handlers need. */
export type AgentPolicyPorts = Readonly<{
  fetchProject: Fetch<Project>;
  policies: AgentPoliciesApp;
  explain: (project: Project) => Promise<ProjectEffective>;
}>;

/** The handlers, one per route of schema/rest/agent-policies.ts. */
export type AgentPolicyHandlers = Readonly<{
  getAgentPolicy: Handler<typeof getAgentPolicyRoute>;
  putAgentPolicy: Handler<typeof putAgentPolicyRoute>;
  getProjectEffective: Handler<typeof getProjectEffectiveRoute>;
}>;

/** Makes the handlers. Errors: NotFoundError `project_not_found`, and those of the app. */
export const makeAgentPolicyHandlers = (ports: AgentPolicyPorts): AgentPolicyHandlers => {
  const found = requireProject(ports.fetchProject);
  return {
    getAgentPolicy: async ({ params }) => ({
      status: 200,
      body: await ports.policies.get(await found(params), params.agent),
    }),
    putAgentPolicy: async ({ params, body, caller, requestId, header }) => {
      const expected = parseIfMatch(header('if-match'));
      const author = { subject: callerName(caller), requestId };
      const project = await found(params);
      return { status: 200, body: await ports.policies.change(project, params.agent, body, expected, author) };
    },
    getProjectEffective: async ({ params }) => ({ status: 200, body: await ports.explain(await found(params)) }),
  };
};
