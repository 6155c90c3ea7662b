// What the REST API checks of a new session before the API server does: names that the caller can mend at once.
// Nothing here is needed for a session that kubectl made; the operator says the same in a condition. Source: 20-control-plane §12.
import { ForbiddenError, InvalidError, NotFoundError } from '#base/errors.ts';
import type { Project } from '#schema/resources/project.ts';
import type { ModelVerdict } from '#schema/rest/workspace.ts';
import { isModelAllowed } from '#schema/rules/check-model.ts';

/** What the check needs. Errors of `judgeModel`: UnavailableError `registry_unavailable`. */
export type CheckSessionSpecPorts = Readonly<{
  fetchProject: (namespace: string, name: string) => Promise<Project | undefined>;
  judgeModel: (name: string) => Promise<ModelVerdict | undefined>;
}>;

/**
 * Resolves for a spec that may be sent on. Errors: NotFoundError `project_not_found`, InvalidError `unknown_model`,
 * `model_disabled`, `provider_disabled`, `unknown_agent`, ForbiddenError `model_not_allowed`.
 */
export type CheckSessionSpec = (namespace: string, spec: Readonly<Record<string, unknown>>) => Promise<void>;

const textAt = (value: unknown, key: string): string | undefined => {
  if (typeof value !== 'object' || value === null) return undefined;
  const found = (value as Readonly<Record<string, unknown>>)[key];
  return typeof found === 'string' ? found : undefined;
};

const refuseModel = (model: string, verdict: ModelVerdict | undefined): void => {
  if (verdict === undefined || verdict.valid || verdict.code === null) return;
  throw new InvalidError(verdict.code, verdict.message ?? `the model ${model} cannot be used`, {
    details: { suggestions: verdict.suggestions },
  });
};

/** Refuses a model that nobody could use, or that the project does not allow. */
export const checkModelOf = async (
  project: Project,
  model: string,
  judgeModel: CheckSessionSpecPorts['judgeModel'],
): Promise<void> => {
  refuseModel(model, await judgeModel(model));
  if (!isModelAllowed(model, project.spec.models?.allowed)) {
    const allowed = (project.spec.models?.allowed ?? []).slice(0, 8).join(', ');
    throw new ForbiddenError(
      'model_not_allowed',
      `project ${project.metadata.name} does not allow the model ${model}; it allows ${allowed || 'none'}`,
    );
  }
};

/** Refuses a default model of a project's spec that nobody could use. Errors: as for `checkModelOf`. */
export const checkDefaultModel = async (
  spec: Readonly<Record<string, unknown>>,
  judgeModel: CheckSessionSpecPorts['judgeModel'],
): Promise<void> => {
  const model = textAt(spec['defaults'], 'model');
  if (model !== undefined) refuseModel(model, await judgeModel(model));
};

/** Refuses an agent that the last valid manifest does not declare; passes while none was read. */
export const checkAgentOf = (project: Project, agent: string): void => {
  const agents = project.status?.manifest?.agents;
  if (agents === undefined || agents.includes(agent)) return;
  throw new InvalidError(
    'unknown_agent',
    `project ${project.metadata.name} declares no enabled agent ${agent}; it declares ${agents.slice(0, 8).join(', ') || 'none'}`,
  );
};

/** The check over its ports. */
export const makeCheckSessionSpec =
  ({ fetchProject, judgeModel }: CheckSessionSpecPorts): CheckSessionSpec =>
  async (namespace, spec) => {
    const name = textAt(spec['projectRef'], 'name');
    if (name === undefined) {
      throw new InvalidError('invalid_request', 'body.spec.projectRef.name is required: the project of the session');
    }
    const project = await fetchProject(namespace, name);
    if (project === undefined) {
      throw new NotFoundError('project_not_found', `there is no project ${name} in namespace ${namespace}`);
    }
    const source = textAt(spec['source'], 'kind');
    if (source !== undefined && source !== 'User') {
      // The API server trusts our account with this field (V3), so a caller must not reach it through us.
      throw new ForbiddenError(
        'forbidden',
        `spec.source.kind ${source.slice(0, 64)} is set by the control plane only; leave spec.source out`,
      );
    }
    const agent = textAt(spec, 'agent');
    if (agent !== undefined) checkAgentOf(project, agent);
    const model = textAt(spec, 'model');
    if (model !== undefined) await checkModelOf(project, model, judgeModel);
  };
