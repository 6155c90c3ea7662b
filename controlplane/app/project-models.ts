// The model names of a project: which are named where, and which of them cannot be used. Pure.
// Must not know where registry or manifest come from. Source: 20-control-plane §4, condition ModelsValid.
import type { ModelProblem } from '#schema/resources/project.ts';
import {
  checkModelName,
  isModelAllowed,
  isUsableModel,
  type ModelNameCode,
  type NamedProvider,
  NO_MODEL_TEXT,
  usableModelNames,
} from '#schema/rules/check-model.ts';
import { GATEWAY_OFF_TEXT } from '#schema/rules/effective-flags.ts';
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
  /** The effective flag `llm_gateway`. */
  gateway: boolean;
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

/** Why no session of the project can call any model, whatever it names; undefined when one can. */
const whyNone = (
  { allowedModels, gateway }: ModelNaming,
  providers: readonly NamedProvider[],
): Readonly<{ reason: ModelProblem; message: string }> | undefined => {
  const none = (reason: ModelProblem, why: string) => ({ reason, message: `no session can call a model: ${why}` });
  if (!gateway) return none('NotAllowed', GATEWAY_OFF_TEXT);
  const usable = usableModelNames(providers);
  if (usable.length === 0) return none('UnknownModel', NO_MODEL_TEXT);
  if (usable.some((name) => isModelAllowed(name, allowedModels))) return undefined;
  const names = `${usable.slice(0, 3).join(', ')}${usable.length > 3 ? ' and others' : ''}`;
  return none('NotAllowed', `spec.models.allowed lets no registered model through; registered are ${names}`);
};

const usesOf = ({ defaults, config }: ModelNaming) => [
  ...(defaults.model === null ? [] : [{ name: defaults.model, usedBy: 'spec.defaults.model' }]),
  ...(config?.models ?? []),
];

const wrongNames = (naming: ModelNaming, providers: readonly NamedProvider[]) =>
  usesOf(naming).flatMap(({ name, usedBy }) => {
    const wrong = judge(name, usedBy.slice(0, 253), providers, naming.allowedModels);
    return wrong === undefined ? [] : [{ ...wrong, usedBy }];
  });

/** Everything about a project's models that does not count, and why: `name` is where it stands. */
export const modelProblems = (
  naming: ModelNaming,
  providers: readonly NamedProvider[],
): readonly Readonly<{ name: string; message: string }>[] => {
  const none = whyNone(naming, providers);
  return [
    ...(none === undefined ? [] : [{ name: 'models', message: none.message }]),
    ...wrongNames(naming, providers).map(({ usedBy, message }) => ({ name: usedBy, message })),
  ];
};

/**
 * The verdict on every name that project and manifest use, and on whether there is a model at all. The reason is that of
 * the first name that is wrong. Source: docs/decisions/0046.
 */
export const checkProjectModels = (
  naming: ModelNaming,
  registry: Registry,
  configured: string | undefined,
): SyncedModels => {
  const { providers, generation } = registry;
  const { defaults, allowedModels, config } = naming;
  const wrong = wrongNames(naming, providers);
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
  const [first] = wrong;
  const rest = wrong.length > 1 ? ` (and ${wrong.length - 1} more)` : '';
  return {
    ...(first === undefined
      ? (whyNone(naming, providers) ?? { reason: 'AllKnown', message: '' })
      : { reason: first.reason, message: `${first.message}${rest}`.slice(0, 1024) }),
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
