// Which agent and which model a session uses: layered values on which operator and control plane agree.
// It must not know the registry; whether a name is usable is a parameter. Source: A192, A214, D19.

import type { AgentSource, ModelSource } from '../resources/session.ts';
import { type Effective, effective } from './effective.ts';

/** Model names of each layer; undefined or null where a layer says nothing. */
export type ModelLayers = Readonly<{
  session: string | null | undefined;
  agent: string | null | undefined;
  project: string | null | undefined;
  platform: string | null | undefined;
}>;

/**
 * The model of a session. The session's own pin counts even when it is not usable, so that the refusal names it; a
 * default that is no longer usable is skipped. Undefined when no layer has a usable name.
 */
export const effectiveModel = (
  layers: ModelLayers,
  isUsable: (name: string) => boolean,
): Effective<string, ModelSource> | undefined => {
  const usable = (name: string | null | undefined): string | undefined =>
    name !== null && name !== undefined && isUsable(name) ? name : undefined;
  return effective<string, ModelSource>([
    { layer: 'Session', value: layers.session ?? undefined },
    { layer: 'Agent', value: usable(layers.agent) },
    { layer: 'Project', value: usable(layers.project) },
    { layer: 'Platform', value: usable(layers.platform) },
  ]);
};

/** Agent names of each layer. `manifest` is `default_agent` and always there. */
export type AgentLayers = Readonly<{
  session: string | null | undefined;
  project: string | null | undefined;
  manifest: string;
}>;

/**
 * The agent of a session: of the session, the project, or the manifest. A project default that the manifest no longer
 * declares is skipped; the session's own choice is not, so that the refusal names it.
 */
export const effectiveAgent = (
  layers: AgentLayers,
  isDeclared: (name: string) => boolean,
): Effective<string, AgentSource> => {
  const project = layers.project ?? undefined;
  const decided = effective<string, AgentSource>([
    { layer: 'Session', value: layers.session ?? undefined },
    { layer: 'Project', value: project !== undefined && isDeclared(project) ? project : undefined },
  ]);
  return decided ?? { value: layers.manifest, layer: 'Manifest', overrode: [] };
};
