// Effective values of a Session with the layer that decided: agent, model, lifecycle, workspace. Pure. Source: D19.
// Must not know pods or facts beyond the last valid manifest.
import type { Installation } from '#schema/installation.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Lifecycle } from '#schema/resources/sandbox-fields.ts';
import type { AgentSource, ModelSource, Session } from '#schema/resources/session.ts';
import { isUsableModel } from '#schema/rules/check-model.ts';
import type { Effective } from '#schema/rules/effective.ts';
import { effectiveAgent, effectiveModel } from '#schema/rules/effective-model.ts';
import type { ProjectFact, RegistryFact } from '#schema/wire/sync.ts';

/** The last valid manifest, which starts go by. */
export type Manifest = NonNullable<ProjectFact['manifest']['lastValid']>;

/** The agent of the next turn, by the rule that the claim follows too. */
export const sessionAgent = (session: Session, project: Project, manifest: Manifest): Effective<string, AgentSource> =>
  effectiveAgent(
    { session: session.spec.agent, project: project.spec.defaults?.agent, manifest: manifest.defaultAgent },
    (name) => manifest.agents.some((agent) => agent.name === name),
  );

/**
 * The model of the next turn, by the rule that the claim follows too. Undefined when no layer has a usable name. While
 * the registry is not known every name counts as usable.
 */
export const sessionModel = (
  session: Session,
  project: Project,
  fact: ProjectFact,
  registry: RegistryFact | undefined,
  agent: string,
): Effective<string, ModelSource> | undefined =>
  effectiveModel(
    {
      session: session.spec.model,
      agent: fact.manifest.lastValid?.agents.find(({ name }) => name === agent)?.model,
      project: project.spec.defaults?.model,
      platform: fact.models.platform,
    },
    (name) => registry === undefined || isUsableModel(name, registry.providers, project.spec.models?.allowed),
  );

/** Lifecycle with every inherited value filled. Seconds; 0 is off. `ttlSecondsAfterFinished` undefined: kept. */
export type EffectiveLifecycle = Readonly<{
  idleSuspendAfterSeconds: number;
  idleDeleteAfterSeconds: number;
  maxLifetimeSeconds: number;
  startDeadlineSeconds: number;
  ttlSecondsAfterFinished: number | undefined;
}>;

const IDLE_SUSPEND_SECONDS = { User: 900, Channel: 900, Trigger: 300, Child: 300 } as const;
const START_DEADLINE_SECONDS = 300;

/** The lifecycle: Session, Project, installation, then the product's own values. Source: 10-kubernetes §3. */
export const effectiveLifecycle = (
  session: Session,
  project: Project | undefined,
  installation: Installation,
): EffectiveLifecycle => {
  const layers: readonly (Lifecycle | undefined)[] = [
    session.spec.lifecycle,
    project?.spec.defaults?.lifecycle,
    installation.sandbox.lifecycle,
  ];
  const of = (field: keyof Lifecycle): number | undefined =>
    layers.find((layer) => layer?.[field] !== undefined)?.[field];
  return {
    idleSuspendAfterSeconds: of('idleSuspendAfterSeconds') ?? IDLE_SUSPEND_SECONDS[session.spec.source.kind],
    idleDeleteAfterSeconds: of('idleDeleteAfterSeconds') ?? 0,
    maxLifetimeSeconds: of('maxLifetimeSeconds') ?? 0,
    startDeadlineSeconds: of('startDeadlineSeconds') ?? START_DEADLINE_SECONDS,
    ttlSecondsAfterFinished: of('ttlSecondsAfterFinished'),
  };
};

/** Where the checkout of a Session lives. `size` is a quantity. */
export type EffectiveWorkspace = Readonly<{
  type: 'Persistent' | 'Ephemeral';
  size: string;
  storageClassName: string | undefined;
  reclaimPolicy: 'Delete' | 'Retain';
}>;

const DEFAULT_SIZE = '10Gi';

/**
 * The workspace: Session, Project, installation. `existing` is the Session's volume: what was made stays, whatever the
 * layers say later.
 */
export const effectiveWorkspace = (
  session: Session,
  project: Project | undefined,
  installation: Installation,
  existing: Readonly<{ retain: boolean }> | undefined,
): EffectiveWorkspace => {
  const layers = [session.spec.workspace, project?.spec.sandbox?.workspace, installation.sandbox.workspace];
  const type = existing ? 'Persistent' : (layers.find((layer) => layer?.type)?.type ?? 'Persistent');
  const size = String(layers.find((layer) => layer?.size !== undefined)?.size ?? DEFAULT_SIZE);
  if (type === 'Ephemeral') return { type, size, storageClassName: undefined, reclaimPolicy: 'Delete' };
  const asked = layers.find((layer) => layer?.reclaimPolicy)?.reclaimPolicy ?? 'Delete';
  return {
    type,
    size,
    storageClassName: layers.find((layer) => layer?.storageClassName)?.storageClassName,
    reclaimPolicy: existing === undefined ? asked : existing.retain ? 'Retain' : 'Delete',
  };
};
