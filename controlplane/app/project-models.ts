// The model names of a project: which are named where, and which of them cannot be used. Pure.
// Must not know where registry or manifest come from. Source: 20-control-plane §4, condition ModelsValid.
import type { ModelProblem } from '#schema/resources/project.ts';
import {
  checkModelName,
  isModelAllowed,
  isUsableModel,
  type ModelNameCode,
  type NamedProvider,
  usableModelNames,
} from '#schema/rules/check-model.ts';
import { effectiveModel } from '#schema/rules/effective-model.ts';
import type { ProjectFact, SyncRequest } from '#schema/wire/sync.ts';
import type { ProjectConfig } from './project-ports.ts';
import type { Registry } from './provider-ports.ts';

type SyncedModels = ProjectFact['models'];
type InvalidModel = SyncedModels['invalid'][number];

const CODES: Readonly<Record<ModelNameCode, ModelProblem>> = {
  unknown_model: 'UnknownModel',
  model_disabled: 'ModelDisabled',
  provider_disabled: 'ProviderDisabled',
};

const MAX_INVALID = 20;

/** What of a project decides about its models. */
export type ModelNaming = Readonly<{
  defaults: Pick<SyncRequest['defaults'], 'model' | 'agent'>;
  allowedModels: readonly string[] | null;
  config: ProjectConfig | undefined;
}>;

/** The platform's own default for a project: the configured name if it is usable, else the first usable one; null without any. */
export const platformModel = (
  configured: string | undefined,
  providers: readonly NamedProvider[],
  allowed: readonly string[] | null | undefined,
): string | null => {
  if (configured !== undefined && isUsableModel(configured, providers, allowed)) return configured;
  return usableModelNames(providers).find((name) => isModelAllowed(name, allowed)) ?? null;
};

const judge = (
  name: string,
  usedBy: string,
  providers: readonly NamedProvider[],
  allowed: readonly string[] | null,
): Readonly<{ invalid: InvalidModel; reason: ModelProblem; message: string }> | undefined => {
  const verdict = checkModelName(name, providers);
  if (!verdict.valid) {
    const reason = CODES[verdict.code];
    const suggestion = verdict.suggestions[0] ?? null;
    return { invalid: { name, code: reason, usedBy, suggestion }, reason, message: `${usedBy}: ${verdict.message}` };
  }
  if (isModelAllowed(name, allowed)) return undefined;
  const suggestion = usableModelNames(providers).find((candidate) => isModelAllowed(candidate, allowed)) ?? null;
  const message = `${usedBy}: model ${name} is not in spec.models.allowed`;
  return { invalid: { name, code: 'NotAllowed', usedBy, suggestion }, reason: 'NotAllowed', message };
};

/** The verdict on every name that project and manifest use. The reason is that of the first name that is wrong. */
export const checkProjectModels = (
  naming: ModelNaming,
  registry: Registry,
  configured: string | undefined,
): SyncedModels => {
  const { providers, generation } = registry;
  const { defaults, allowedModels, config } = naming;
  const uses = [
    ...(defaults.model === null ? [] : [{ name: defaults.model, usedBy: 'spec.defaults.model' }]),
    ...(config?.models ?? []),
  ];
  const wrong = uses.flatMap(({ name, usedBy }) => judge(name, usedBy.slice(0, 253), providers, allowedModels) ?? []);
  const agent = config?.agents.find(({ name }) => name === (defaults.agent ?? config.defaultAgent));
  const platform = platformModel(configured, providers, allowedModels);
  const decided = effectiveModel(
    {
      session: undefined,
      agent: agent?.model,
      project: defaults.model,
      platform,
    },
    (name) => isUsableModel(name, providers, allowedModels),
  );
  const rest = wrong.length > 1 ? ` (and ${wrong.length - 1} more)` : '';
  return {
    reason: wrong[0]?.reason ?? 'AllKnown',
    message: (wrong[0] === undefined ? '' : `${wrong[0].message}${rest}`).slice(0, 1024),
    default: decided?.value ?? null,
    platform,
    registryGeneration: generation,
    invalid: wrong.slice(0, MAX_INVALID).map(({ invalid }) => invalid),
  };
};

/** Where a stored project names a provider, or one of the given models of it. */
export const referencesOf = (
  project: Readonly<{ namespace: string; name: string }> & ModelNaming,
  providerId: string,
  models: ReadonlySet<string> | undefined,
): readonly string[] => {
  const at = `project ${project.namespace}/${project.name}`;
  const isNamed = (name: string): boolean => {
    if (!name.startsWith(`${providerId}/`)) return false;
    const model = name.slice(providerId.length + 1);
    return models === undefined || models.has(model);
  };
  return [
    ...(project.defaults.model !== null && isNamed(project.defaults.model) ? [`${at}: spec.defaults.model`] : []),
    ...(project.allowedModels ?? [])
      .filter((entry) => isNamed(entry))
      .map((entry) => `${at}: spec.models.allowed (${entry})`),
    ...(project.config?.models ?? []).filter(({ name }) => isNamed(name)).map(({ usedBy }) => `${at}: ${usedBy}`),
  ];
};
