// Whether the control plane has to be asked to look at a Project, and with what. Pure. Must not know clients.
// Source: 10-kubernetes §6.
import type { Project } from '#schema/resources/project.ts';
import { effectiveFlags, featureStatus } from '#schema/rules/effective-flags.ts';
import type { SyncRequest } from '#schema/wire/sync.ts';
import { shortHash } from '../runtime/canonical.ts';
import type { ProjectAction } from './actions.ts';
import type { ObservedProject } from './observed.ts';

/** An answer that does not come is asked for again after so long. Units: milliseconds. */
export const ASK_AGAIN_MS = 60_000;

const tokenOf = (project: Project): string | null => project.spec.syncToken ?? null;

/** Effective flags as `status.features` has them. */
export const featuresOf = ({ project, installation }: ObservedProject) =>
  featureStatus(effectiveFlags(project.spec.features, installation.features));

/** Whether the facts answer the Project as it is: its generation, its token, and the flags that were last sent. */
export const isAnswered = (o: ObservedProject): boolean => {
  const { project, fact } = o;
  if (fact === undefined || fact.state !== 'done') return false;
  if (fact.generation !== project.metadata.generation || fact.syncToken !== tokenOf(project)) return false;
  const features = shortHash(featuresOf(o));
  const sent = o.asked?.generation === fact.generation ? o.asked.features : undefined;
  const written = project.status?.observedGeneration === fact.generation ? project.status.features : undefined;
  return sent === features || written === undefined || shortHash(written) === features;
};

/** Body of the sync call. */
export const syncRequest = ({ project, installation }: ObservedProject): SyncRequest => {
  const { metadata, spec } = project;
  const flags = effectiveFlags(spec.features, installation.features);
  const keys = flags.llm_gateway.value ? [] : (spec.providerKeys ?? []);
  return {
    uid: metadata.uid,
    generation: metadata.generation,
    syncToken: tokenOf(project),
    repository: {
      url: spec.repository.url,
      defaultBranch: spec.repository.defaultBranch ?? null,
      credentialsSecretName: spec.repository.credentialsSecretRef?.name ?? null,
      forcePush: spec.repository.forcePush,
      pollIntervalSeconds: spec.repository.pollIntervalSeconds ?? null,
    },
    manifestPath: spec.manifestPath,
    features: Object.fromEntries(Object.entries(flags).map(([name, { value }]) => [name, value])),
    defaults: { agent: spec.defaults?.agent ?? null, model: spec.defaults?.model ?? null },
    allowedModels: spec.models?.allowed ?? null,
    secrets: [
      ...(spec.secrets ?? []).map(({ env, identifier, secretRef, agents }) => ({
        env,
        identifier: identifier ?? null,
        secretName: secretRef.name,
        key: secretRef.key,
        agents,
      })),
      // Provider keys go to the sandbox only while the gateway is off. Source: D8.
      ...keys.map(({ env, provider, secretRef }) => ({
        env,
        identifier: provider,
        secretName: secretRef.name,
        key: secretRef.key,
        agents: ['*'],
      })),
    ].slice(0, 64),
  };
};

/** The sync call, when one is due. */
export const syncActions = (o: ObservedProject): ProjectAction[] => {
  if (o.controlPlane.state !== 'available' || isAnswered(o)) return [];
  const features = shortHash(featuresOf(o));
  const { metadata } = o.project;
  const isAsked =
    o.asked?.generation === metadata.generation &&
    o.asked.syncToken === tokenOf(o.project) &&
    o.asked.features === features &&
    o.asked.agoMs < ASK_AGAIN_MS;
  return isAsked ? [] : [{ kind: 'syncProject', request: syncRequest(o), features }];
};
