// What a claim needs of project and session: base, agents, models and granted secrets, each resolved by its one rule.
// Must not know SQL, git or Kubernetes. Source: A192, A214, 10-kubernetes §2 "Grants".
import { NotFoundError } from '#base/errors.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import { isModelAllowed, isUsableModel, usableModelNames } from '#schema/rules/check-model.ts';
import { effectiveAgent, effectiveModel } from '#schema/rules/effective-model.ts';
import { agentVisionOf, NO_POLICY } from '#schema/settings/agent-policy.ts';
import type { ProcessLimits } from '#schema/settings/budgets.ts';
import type { ProviderModel } from '#schema/settings/providers.ts';
import { MODEL_ROLES } from '#schema/settings/roles.ts';
import type { ClaimedModel, CompiledAgent } from '#schema/wire/claim.ts';
import { type AgentPolicyStore, policyOf, type StoredPolicy } from './agent-policies.ts';
import { grantedSecrets } from './granted-secrets.ts';
import type { AgentRepoint, ClaimConfig } from './ports.ts';
import { platformModel } from './project-models.ts';
import type { ProjectConfig, ProjectStore, ReadSecret, Repositories } from './project-ports.ts';
import type { ReadRegistry } from './provider-ports.ts';
import { resolveRoles } from './role-models.ts';
import type { SettingsApp } from './settings.ts';

/** What claims are made from. */
export type ProjectConfigPorts = Readonly<{
  store: Pick<ProjectStore, 'find'>;
  readRegistry: ReadRegistry;
  readSecret: ReadSecret;
  branchCommit: Repositories['branchCommit'];
  defaultModel: string | undefined;
  author: Readonly<{ name: string; email: string }>;
  settings: Pick<SettingsApp, 'current'>;
  listPolicies: AgentPolicyStore['list'];
  limits: ProcessLimits;
}>;

/** Granted environment of a session with the revision that it belongs to. */
export type SessionEnv = Readonly<{ env: Readonly<Record<string, string>>; revision: number }>;

/** Gives, for a session as it is now, the model of a run by its prompt; null when none can be resolved. */
export type RunModel = (
  session: Session,
  project: Project,
) => Promise<(prompt: Readonly<{ agent: string | null; model: string | null }>) => string | null>;

/** The functions about a session's configuration. */
export type ProjectConfigApp = Readonly<{
  claimConfig: ClaimConfig;
  runModel: RunModel;
  /** The granted environment alone; undefined while the project was not synced. Errors: UnavailableError. */
  sessionEnv: (session: Session, project: Project) => Promise<SessionEnv | undefined>;
}>;

const MAX_MODELS = 64;

/**
 * What a harness may ask for in one answer. Harnesses keep that much of the window free, so half of it is the most: with
 * the whole window kept free they would compact before every step.
 */
const answerTokensOf = (model: ProviderModel): number =>
  Math.min(model.max_output, Math.max(1, Math.floor(model.context_window / 2)));

/** A model of the registry as a claim names it; undefined for one that it does not hold. */
export const claimedModel = (
  name: string,
  registry: Readonly<{ providers: readonly Readonly<{ id: string; models: readonly ProviderModel[] }>[] }>,
): ClaimedModel | undefined => {
  const slash = name.indexOf('/');
  const model = registry.providers
    .find(({ id }) => id === name.slice(0, slash))
    ?.models.find(({ id }) => id === name.slice(slash + 1));
  return model === undefined
    ? undefined
    : {
        name,
        contextWindowTokens: model.context_window,
        maxOutputTokens: answerTokensOf(model),
        input: [...model.input],
        reasoning: model.reasoning,
        ...(model.variants === undefined ? {} : { variants: model.variants }),
      };
};

/** The agent of a session; one that is no longer declared is replaced by the manifest's default. Source: A105. */
const agentOf = (session: Session, project: Project, config: ProjectConfig): string => {
  const isDeclared = (name: string): boolean => config.agents.some((agent) => agent.name === name);
  const layers = {
    session: session.spec.agent,
    project: project.spec.defaults?.agent,
    manifest: config.defaultAgent,
  };
  const decided = effectiveAgent(layers, isDeclared).value;
  return isDeclared(decided) ? decided : config.defaultAgent;
};

/** The move that `agentOf` made, if it made one. Source: A105. */
const repointOf = ({ spec }: Session, agent: string): AgentRepoint | undefined =>
  spec.agent === undefined || spec.agent === agent ? undefined : { from: spec.agent, to: agent };

/** The agents with what the one that took over is told of it: nothing else tells a model. Source: A105. */
export const withMove = (agents: readonly CompiledAgent[], move: AgentRepoint | undefined): readonly CompiledAgent[] =>
  move === undefined
    ? agents
    : agents.map((agent) => {
        if (agent.name !== move.to) return agent;
        const told = `This session was started with the agent "${move.from}", which the project no longer declares. You are the agent "${move.to}" and go on in its place.`;
        return { ...agent, prompt: agent.prompt.trim() === '' ? told : `${agent.prompt.trimEnd()}\n\n${told}` };
      });

/** The agents with the image policies that are saved for them. Source: 40-settings B7. */
const withVision = (agents: readonly CompiledAgent[], policies: readonly StoredPolicy[]): readonly CompiledAgent[] =>
  agents.map((agent) => {
    const saved = policies.find((policy) => policy.agent === agent.name)?.saved ?? NO_POLICY;
    return { ...agent, vision: agentVisionOf(policyOf(saved)) };
  });

/** Makes the functions. */
export const makeProjectConfig = (ports: ProjectConfigPorts): ProjectConfigApp => {
  /** Values of Secrets; what cannot be read is left out, and the Project's condition says so. */
  const readEnv = async (
    namespace: string,
    wanted: readonly Readonly<{ env: string; secretRef: Readonly<{ name: string; key: string }> }>[],
  ): Promise<Record<string, string>> => {
    const env: Record<string, string> = {};
    for (const name of new Set(wanted.map(({ secretRef }) => secretRef.name))) {
      const answer = await ports.readSecret(namespace, name);
      if (answer.kind !== 'found') continue;
      for (const { env: variable, secretRef } of wanted) {
        const value = secretRef.name === name ? answer.secret.data[secretRef.key] : undefined;
        if (value !== undefined) env[variable] = value.toString('utf8');
      }
    }
    return env;
  };

  const envOf = (session: Session, project: Project, config: ProjectConfig): Promise<Record<string, string>> => {
    const agent = agentOf(session, project, config);
    // `providerKeys` stay here: commands of the agent would see them. Source: D8, docs/decisions/0020.
    const { secrets = [] } = project.spec;
    const granted = grantedSecrets(secrets, agent, config.secrets[agent] ?? 'none', session.spec.scope?.secrets);
    return readEnv(project.metadata.namespace, granted);
  };

  return {
    sessionEnv: async (session, project) => {
      const stored = await ports.store.find(project.metadata.uid);
      if (stored?.config === undefined) return undefined;
      return { env: await envOf(session, project, stored.config), revision: stored.secretsRevision };
    },
    runModel: async (session, project) => {
      const [stored, registry] = await Promise.all([ports.store.find(project.metadata.uid), ports.readRegistry()]);
      const config = stored?.config;
      const allowed = project.spec.models?.allowed;
      const isUsable = (name: string): boolean => isUsableModel(name, registry.providers, allowed);
      return (prompt) => {
        const agent = prompt.agent ?? (config === undefined ? undefined : agentOf(session, project, config));
        const layers = {
          session: prompt.model ?? session.spec.model,
          agent: config?.agents.find(({ name }) => name === agent)?.model,
          project: project.spec.defaults?.model,
          platform: platformModel(ports.defaultModel, registry.providers, allowed),
        };
        return effectiveModel(layers, isUsable)?.value ?? null;
      };
    },
    claimConfig: async (session, project) => {
      const stored = await ports.store.find(project.metadata.uid);
      const config = stored?.config;
      const { commit = null, defaultBranch = null } = stored?.fact?.repository ?? {};
      if (stored === undefined || config === undefined || commit === null || defaultBranch === null) {
        return { wait: 'project_not_synced' };
      }
      const base = session.spec.branch?.base ?? defaultBranch;
      const baseCommit = base === defaultBranch ? commit : await ports.branchCommit(project.metadata.uid, base);
      if (baseCommit === undefined) {
        throw new NotFoundError(
          'branch_not_found',
          `the repository of project ${project.metadata.name} has no branch ${base}`,
        );
      }
      const registry = await ports.readRegistry();
      const allowed = project.spec.models?.allowed;
      const isUsable = (name: string): boolean => isUsableModel(name, registry.providers, allowed);
      const agent = agentOf(session, project, config);
      const move = repointOf(session, agent);
      const decided = effectiveModel(
        {
          session: session.spec.model,
          agent: config.agents.find(({ name }) => name === agent)?.model,
          project: project.spec.defaults?.model,
          platform: platformModel(ports.defaultModel, registry.providers, allowed),
        },
        isUsable,
      );
      const chosen = decided !== undefined && isUsable(decided.value) ? decided.value : undefined;
      const usable = usableModelNames(registry.providers).filter((name) => isModelAllowed(name, allowed));
      const { roles: slots, budgets } = await ports.settings.current();
      const candidates = { slots, run: chosen ?? null, environment: ports.defaultModel ?? null };
      const choices = resolveRoles(candidates, { providers: registry.providers, allowed });
      const roles = MODEL_ROLES.map((role) => ({ role, model: choices[role].model, reason: choices[role].reason }));
      const first = [chosen, ...roles.map(({ model }) => model)].filter((name) => typeof name === 'string');
      const names = [...new Set([...first, ...usable])].slice(0, MAX_MODELS);
      return {
        baseBranch: base,
        baseCommit,
        agents: withMove(withVision(config.agents, await ports.listPolicies(project.metadata.uid)), move),
        beeuniTools: config.beeuniTools,
        projectTools: config.projectTools,
        configDirs: config.configDirs,
        piPackages: agent === null ? [] : config.piPackages?.[agent],
        agent,
        agentRepoint: move,
        model: (chosen === undefined ? undefined : claimedModel(chosen, registry)) ?? null,
        models: names.flatMap((name) => claimedModel(name, registry) ?? []),
        author: ports.author,
        env: await envOf(session, project, config),
        envRevision: stored.secretsRevision,
        maxModelRequestBytes: budgets.max_model_request_bytes,
        roles,
        limits: ports.limits,
      };
    },
  };
};
