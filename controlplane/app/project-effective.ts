// What a session of a project would get now, with the layer that decided and what it overrode. Pure.
// Must not know where any layer is kept. Source: D19, J2.
import type { Project } from '#schema/resources/project.ts';
import { FEATURE_FLAGS } from '#schema/resources/project.ts';
import type { ManifestRuntime } from '#schema/resources/sandbox-fields.ts';
import type { ProjectEffective } from '#schema/rest/agent-policies.ts';
import { isUsableModel } from '#schema/rules/check-model.ts';
import type { Effective } from '#schema/rules/effective.ts';
import {
  type EffectiveFlags,
  effectiveFlags,
  FLAG_FIELDS,
  flagWarning,
  type PlatformFlags,
} from '#schema/rules/effective-flags.ts';
import { effectiveAgent, effectiveModel } from '#schema/rules/effective-model.ts';
import { type HarnessChoice, selectHarness } from '#schema/rules/select-harness.ts';
import { AGENT_POLICY_FIELDS, DEFAULT_AGENT_POLICY, NO_POLICY } from '#schema/settings/agent-policy.ts';
import type { StoredPolicy } from './agent-policies.ts';
import { modelProblems, platformModel } from './project-models.ts';
import type { ProjectConfig } from './project-ports.ts';
import type { Registry } from './provider-ports.ts';

/** Everything that decides. */
export type ProjectLayers = Readonly<{
  project: Project;
  platformFlags: PlatformFlags;
  config: ProjectConfig | undefined;
  runtime: ManifestRuntime | undefined;
  registry: Registry;
  defaultModel: string | undefined;
  policies: readonly StoredPolicy[];
}>;

type Shown<T> = { value: T; layer: string; overrode: { layer: string; value: T }[] };

const shown = <T>({ value, layer, overrode }: Effective<T>): Shown<T> => ({ value, layer, overrode: [...overrode] });

/** The harness with every rule below the deciding one that would have said something else or the same. */
const harnessOf = (flags: EffectiveFlags, runtime: ManifestRuntime | undefined): Shown<string> => {
  let inputs = {
    llmGateway: flags.llm_gateway.value,
    piHarness: flags.pi_harness.value,
    manifestRuntime: runtime,
  };
  const choices: HarnessChoice[] = [];
  for (;;) {
    const choice = selectHarness(inputs);
    choices.push(choice);
    if (choice.reason === 'default') break;
    // Without the rule that decided, the next one decides.
    if (choice.reason === 'gateway-off') inputs = { ...inputs, llmGateway: true };
    else if (choice.reason === 'project-flag') inputs = { ...inputs, piHarness: false };
    else inputs = { ...inputs, manifestRuntime: undefined };
  }
  const [first, ...rest] = choices.map(({ id, reason }) => ({ value: id as string, layer: reason as string }));
  return { value: first?.value ?? '', layer: first?.layer ?? '', overrode: rest };
};

/** The whole answer. */
export const projectEffective = (layers: ProjectLayers): ProjectEffective => {
  const { project, config, registry } = layers;
  const { defaults, models } = project.spec;
  const flags = effectiveFlags(project.spec.features, layers.platformFlags);
  const isDeclared = (name: string): boolean => config?.agents.some((agent) => agent.name === name) === true;
  const agent =
    config === undefined
      ? undefined
      : effectiveAgent({ session: undefined, project: defaults?.agent, manifest: config.defaultAgent }, isDeclared);
  const allowed = models?.allowed;
  const model = effectiveModel(
    {
      session: undefined,
      agent: config?.agents.find(({ name }) => name === agent?.value)?.model,
      project: defaults?.model,
      platform: platformModel(layers.defaultModel, registry.providers, allowed),
    },
    (name) => isUsableModel(name, registry.providers, allowed),
  );
  const naming = {
    defaults: { agent: defaults?.agent ?? null, model: defaults?.model ?? null },
    allowedModels: allowed ?? null,
    // That it is off is told of its flag.
    gateway: true,
    config,
  };
  const isAgentUnknown = config !== undefined && defaults?.agent !== undefined && !isDeclared(defaults.agent);
  const problems = [
    ...FEATURE_FLAGS.flatMap((name) => {
      const message = flagWarning(name, flags[name]);
      return message === null ? [] : [{ name: `spec.features.${FLAG_FIELDS[name]}`, message }];
    }),
    ...(isAgentUnknown
      ? [
          {
            name: 'spec.defaults.agent',
            message: `the manifest declares no agent ${defaults.agent}, so its default ${config.defaultAgent} counts`,
          },
        ]
      : []),
    ...modelProblems(naming, registry.providers),
  ];
  const savedOf = (name: string) => layers.policies.find((policy) => policy.agent === name)?.saved ?? NO_POLICY;
  return {
    flags: FEATURE_FLAGS.map((name) => ({ name, available: flags[name].available, ...shown(flags[name]) })),
    harness: harnessOf(flags, layers.runtime),
    agent: agent === undefined ? null : shown(agent),
    model: model === undefined ? null : shown(model),
    problems,
    policies: (config?.agents ?? []).flatMap(({ name }) =>
      AGENT_POLICY_FIELDS.map((field) => {
        const saved = savedOf(name)[field];
        const fallback = DEFAULT_AGENT_POLICY[field];
        return saved === null
          ? { agent: name, name: field, value: fallback, layer: 'Default', overrode: [] }
          : {
              agent: name,
              name: field,
              value: saved,
              layer: 'Saved',
              overrode: [{ layer: 'Default', value: fallback }],
            };
      }),
    ),
  };
};
