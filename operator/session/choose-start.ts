// What a start now would run: harness, gateway, image, resources, workspace. Pure.
// Must not know whether a start is allowed. Source: 00-product §4, J1, 10-kubernetes §4.
import type { Installation } from '#schema/installation.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import { effectiveFlags } from '#schema/rules/effective-flags.ts';
import type { HarnessChoice } from '#schema/rules/select-harness.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import { chooseHarness } from '../runtime/choose-harness.ts';
import { type EffectiveWorkspace, effectiveWorkspace, type Manifest, sessionAgent } from './effective.ts';
import { type PodResources, sandboxResources, type Template } from './resources.ts';

/** Everything that a pod made now is made from, besides the names of its Session. */
export type StartChoice = Readonly<{
  harness: HarnessChoice;
  gateway: boolean;
  image: string;
  resources: PodResources;
  workspace: EffectiveWorkspace;
}>;

/** Name of the template that stands for the platform's own sandbox. Source: A89. */
const PLATFORM_TEMPLATE = 'default';

/** The template of a Session by name: Session, agent, manifest; undefined is the platform's. Source: A90. */
export const templateName = (session: Session, project: Project, manifest: Manifest): string | undefined => {
  const agent = sessionAgent(session, project, manifest).value;
  const name =
    session.spec.sandbox?.template ??
    manifest.agents.find((entry) => entry.name === agent)?.template ??
    manifest.defaultTemplate ??
    PLATFORM_TEMPLATE;
  return name === PLATFORM_TEMPLATE ? undefined : name;
};

/** The template itself; undefined is the platform's, or one that the manifest does not have. */
export const templateOf = (session: Session, project: Project, manifest: Manifest): Template | undefined => {
  const name = templateName(session, project, manifest);
  return manifest.templates.find(({ slug }) => slug === name);
};

/** What a start now would run; undefined while no valid manifest is known. */
export const chooseStart = (
  inputs: Readonly<{
    session: Session;
    project: Project;
    projectFact: ProjectFact | undefined;
    volume: Readonly<{ retain: boolean }> | undefined;
    installation: Installation;
  }>,
): StartChoice | undefined => {
  const { session, project, projectFact, volume, installation } = inputs;
  const manifest = projectFact?.manifest.lastValid;
  if (manifest === undefined || manifest === null) return undefined;
  const harness = chooseHarness(project.spec.features, manifest.runtime, installation);
  const template = templateOf(session, project, manifest);
  const workspace = effectiveWorkspace(session, project, installation, volume);
  return {
    harness,
    gateway: effectiveFlags(project.spec.features, installation.features).llm_gateway.value,
    image: template?.image ?? project.spec.sandbox?.image ?? installation.sandbox.image,
    resources: sandboxResources({ session, project, template, harness: harness.id, workspace, installation }),
    workspace,
  };
};
