// Whether a model name may be used: the one check behind settings, projects, manifests, sessions, prompts and the gateway.
// It must not know where the registry is kept or who asks. Source: 20-control-plane §4, A213, A215.
import { nearestNames } from './nearest-names.ts';

/** One model, as far as names are judged. `retired`: its provider no longer lists it. */
export type NamedModel = Readonly<{
  id: string;
  enabled: boolean;
  retired?: Readonly<{ replacement: string | null }> | undefined;
}>;

/** One provider of the registry, as far as names are judged. */
export type NamedProvider = Readonly<{ id: string; enabled: boolean; models: readonly NamedModel[] }>;

/** Why a name is refused. */
export type ModelNameCode = 'unknown_model' | 'model_disabled' | 'provider_disabled';

/** The verdict on one name. `suggestions`: usable names, nearest first, at most 3. */
export type ModelNameVerdict =
  | Readonly<{ valid: true; provider: string; model: string }>
  | Readonly<{ valid: false; code: ModelNameCode; message: string; suggestions: readonly string[] }>;

/** A `provider/model` name in its two parts; undefined without a slash. The model part may hold slashes itself. */
export const splitModelName = (name: string): Readonly<{ provider: string; model: string }> | undefined => {
  const slash = name.indexOf('/');
  if (slash < 1 || slash === name.length - 1) return undefined;
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
};

/** Every name that may be used now, in the order of the registry. */
export const usableModelNames = (providers: readonly NamedProvider[]): readonly string[] =>
  providers
    .filter((provider) => provider.enabled)
    .flatMap((provider) =>
      provider.models
        .filter((model) => model.enabled && model.retired === undefined)
        .map((model) => `${provider.id}/${model.id}`),
    );

/** What to do where no model may be used at all. */
export const NO_MODEL_TEXT =
  'no model is registered and enabled; register a provider with POST /v1/workspace/providers, or enable one';

const shown = (name: string): string => (name.length > 120 ? `${name.slice(0, 120)}…` : name);

const hintOf = (suggestions: readonly string[], usable: readonly string[]): string => {
  if (suggestions.length > 0) return `; nearest: ${suggestions.join(', ')}`;
  if (usable.length === 0) return `; ${NO_MODEL_TEXT}`;
  return `; registered are ${usable.slice(0, 3).join(', ')}${usable.length > 3 ? ' and others' : ''}`;
};

const refuse = (
  name: string,
  code: ModelNameCode,
  what: string,
  providers: readonly NamedProvider[],
  replacement: string | null = null,
): ModelNameVerdict => {
  const usable = usableModelNames(providers);
  const nearest = nearestNames(name, usable, 3);
  const isGood = replacement !== null && usable.includes(replacement);
  const suggestions = isGood ? [replacement, ...nearest.filter((other) => other !== replacement)].slice(0, 3) : nearest;
  return { valid: false, code, message: `${what}${hintOf(suggestions, usable)}`, suggestions };
};

/**
 * The verdict on a name: its provider exists and is enabled, and the model is listed, enabled and not retired. Calls of
 * what runs already are judged with `retired: 'served'`.
 */
export const checkModelName = (
  name: string,
  providers: readonly NamedProvider[],
  retired: 'refused' | 'served' = 'refused',
): ModelNameVerdict => {
  const parts = splitModelName(name);
  const provider = providers.find((entry) => entry.id === parts?.provider);
  if (parts === undefined || provider === undefined) {
    const what =
      parts === undefined
        ? `the model ${shown(name)} is not named provider/model`
        : `no provider ${shown(parts.provider)} is registered (model ${shown(name)})`;
    return refuse(name, 'unknown_model', what, providers);
  }
  const model = provider.models.find((entry) => entry.id === parts.model);
  if (model === undefined) {
    return refuse(name, 'unknown_model', `provider ${provider.id} lists no model ${shown(parts.model)}`, providers);
  }
  if (!provider.enabled) {
    return refuse(name, 'provider_disabled', `provider ${provider.id} of model ${shown(name)} is disabled`, providers);
  }
  if (!model.enabled) return refuse(name, 'model_disabled', `model ${shown(name)} is disabled`, providers);
  if (model.retired !== undefined && retired === 'refused') {
    const what = `model ${shown(name)} is retired: its provider no longer lists it`;
    return refuse(name, 'model_disabled', what, providers, model.retired.replacement);
  }
  return { valid: true, ...parts };
};

/** Whether a project's list lets the name through: exact names or `provider/*`; null is all. Source: 10-kubernetes §2. */
export const isModelAllowed = (name: string, allowed: readonly string[] | null | undefined): boolean =>
  allowed === null ||
  allowed === undefined ||
  allowed.some((pattern) => (pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern));

/** Whether a project may use a name now: the registry offers it and the project's list lets it through. */
export const isUsableModel = (
  name: string,
  providers: readonly NamedProvider[],
  allowed: readonly string[] | null | undefined,
): boolean => checkModelName(name, providers).valid && isModelAllowed(name, allowed);
