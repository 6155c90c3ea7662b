// Which feature flags are on for a Project, and which layer decided.
// It must not know what a flag does.
import type { FeatureFlag, FeatureSource, FlagState, ProjectSpec, ProjectStatus } from '../resources/project.ts';
import { FEATURE_FLAGS } from '../resources/project.ts';
import type { Effective } from './effective.ts';

/** What the installation says about each flag: chart values `features.<flag>.default` and `.available`. */
export type PlatformFlags = Readonly<Record<FeatureFlag, Readonly<{ default: boolean; available: boolean }>>>;

/** The effective value of one flag. `available` false is the kill switch: value false, layer Unavailable. */
export type EffectiveFlag = Effective<boolean, FeatureSource> & Readonly<{ available: boolean }>;
export type EffectiveFlags = Readonly<Record<FeatureFlag, EffectiveFlag>>;

/** Compiled platform flags of an installation that sets nothing. Source: A209, 10-kubernetes §2 Flags. */
export const DEFAULT_PLATFORM_FLAGS: PlatformFlags = {
  llm_gateway: { default: true, available: true },
  pi_harness: { default: false, available: true },
  config_releases: { default: true, available: false },
  warm_sessions: { default: false, available: false },
};

/** The field of `spec.features` that overrides each flag. */
export const FLAG_FIELDS = {
  llm_gateway: 'llmGateway',
  pi_harness: 'piHarness',
  config_releases: 'configReleases',
  warm_sessions: 'warmSessions',
} as const satisfies Record<FeatureFlag, keyof ProjectSpec['features']>;

/** What a project without the gateway is told, wherever it asks. Source: docs/decisions/0020. */
export const GATEWAY_OFF_TEXT =
  'the flag llm_gateway of the project is off, and sandboxes have no other way to a model yet; turn it on';

/** How a flag is enforced and how settled it is. Source: A208; `pi` is the experimental harness of 00-product §7. */
export const FLAG_FACTS = {
  llm_gateway: { enforcement: 'routes', stability: 'stable' },
  pi_harness: { enforcement: 'behavioral', stability: 'experimental' },
  config_releases: { enforcement: 'behavioral', stability: 'experimental' },
  warm_sessions: { enforcement: 'behavioral', stability: 'experimental' },
} as const satisfies Record<FeatureFlag, Readonly<{ enforcement: string; stability: string }>>;

function effectiveFlag(state: FlagState, platform: PlatformFlags[FeatureFlag]): EffectiveFlag {
  const project = state === 'Inherit' ? undefined : state === 'Enabled';
  const platformEntry = { layer: 'Platform', value: platform.default } as const;
  const projectEntry = project === undefined ? [] : [{ layer: 'Project', value: project } as const];
  if (!platform.available) {
    return { value: false, layer: 'Unavailable', overrode: [...projectEntry, platformEntry], available: false };
  }
  return project === undefined
    ? { value: platform.default, layer: 'Platform', overrode: [], available: true }
    : { value: project, layer: 'Project', overrode: [platformEntry], available: true };
}

/** Effective flags of a Project: available ∧ (Enabled → on, Disabled → off, Inherit → platform default). Source: 10-kubernetes §2, D19. */
export function effectiveFlags(features: ProjectSpec['features'], platform: PlatformFlags): EffectiveFlags {
  const of = (flag: FeatureFlag) => effectiveFlag(features[FLAG_FIELDS[flag]], platform[flag]);
  return {
    llm_gateway: of('llm_gateway'),
    pi_harness: of('pi_harness'),
    config_releases: of('config_releases'),
    warm_sessions: of('warm_sessions'),
  };
}

/** What a Project is told that turns on what the installation does not offer. */
export const unavailableText = (flag: FeatureFlag): string =>
  `${flag} is enabled, but this installation does not offer it`;

/** What the value of a flag that counts does not do; null when there is nothing to say. */
export const flagWarning = (flag: FeatureFlag, { value, layer, overrode }: EffectiveFlag): string | null => {
  if (flag === 'llm_gateway' && !value) return GATEWAY_OFF_TEXT;
  const isWished = layer === 'Unavailable' && overrode.some((entry) => entry.layer === 'Project' && entry.value);
  return isWished ? unavailableText(flag) : null;
};

/** Effective flags as `status.features` lists them. */
export function featureStatus(flags: EffectiveFlags): NonNullable<ProjectStatus['features']> {
  return FEATURE_FLAGS.map((name) => {
    const { value, layer, available } = flags[name];
    return { name, enabled: value, available, source: layer };
  });
}
