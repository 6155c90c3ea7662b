// Requests and limits of a sandbox from its layers, under the Project's ceiling. Pure. Must not know pods.
import type { Installation } from '#schema/installation.ts';
import type { Quantity } from '#schema/primitives.ts';
import type { Project } from '#schema/resources/project.ts';
import type { ResourceList, Resources } from '#schema/resources/sandbox-fields.ts';
import type { Session } from '#schema/resources/session.ts';
import { type Amount, bytesQuantity, cpuQuantity, parseQuantity } from '../runtime/quantity.ts';
import type { EffectiveWorkspace, Manifest } from './effective.ts';

/** The resources that a sandbox may ask for. */
export const RESOURCE_NAMES = ['cpu', 'memory', 'ephemeral-storage'] as const;
type ResourceName = (typeof RESOURCE_NAMES)[number];

/** Requests and limits as a pod has them: canonical quantities, only what is set. */
export type PodResources = Readonly<{
  requests: Readonly<Partial<Record<ResourceName, string>>>;
  limits: Readonly<Partial<Record<ResourceName, string>>>;
}>;

/** A sandbox template of the manifest. */
export type Template = Manifest['templates'][number];

const GIB = 2n ** 30n * 1_000_000_000n;

const amountOf = (quantity: Quantity | null | undefined): Amount | undefined =>
  quantity === undefined || quantity === null ? undefined : parseQuantity(quantity);

const print = (name: ResourceName, amount: Amount): string =>
  name === 'cpu' ? cpuQuantity(amount) : bytesQuantity(amount);

const least = (a: Amount, b: Amount | undefined): Amount => (b !== undefined && b < a ? b : a);

/** Ceiling of one resource: Project's `maxResources`, its `resources.limits`, then the installation. */
const ceilingOf = (name: ResourceName, project: Project, installation: Installation): Amount | undefined =>
  amountOf(
    project.spec.sandbox?.maxResources?.[name] ??
      project.spec.sandbox?.resources?.limits?.[name] ??
      installation.sandbox.maxResources[name],
  );

const ofTemplate = (template: Template | undefined): Resources => {
  if (template === undefined) return {};
  const limits: ResourceList = {
    cpu: template.cpu ?? undefined,
    memory: template.memory ?? undefined,
    'ephemeral-storage': template.disk ?? undefined,
  };
  return { limits };
};

/**
 * Resources of the sandbox: Session, template, Project, profile of the harness, each value from the first that names it.
 * Limits are cut to the ceiling, requests to the limits. Without a word about it the limit of local storage is scratch,
 * an Ephemeral workspace and 1Gi more. Source: 10-kubernetes §2, §3, §7.
 */
export const sandboxResources = (
  inputs: Readonly<{
    session: Session;
    project: Project;
    template: Template | undefined;
    harness: string;
    workspace: EffectiveWorkspace;
    installation: Installation;
  }>,
): PodResources => {
  const { session, project, template, harness, workspace, installation } = inputs;
  const layers: readonly (Resources | undefined)[] = [
    session.spec.sandbox?.resources,
    ofTemplate(template),
    project.spec.sandbox?.resources,
    installation.sandbox.profiles[harness],
  ];
  const first = (side: 'requests' | 'limits', name: ResourceName): Amount | undefined =>
    amountOf(layers.find((layer) => layer?.[side]?.[name] !== undefined)?.[side]?.[name]);
  const local = (): Amount =>
    (amountOf(installation.sandbox.scratchSize) ?? 0n) +
    (workspace.type === 'Ephemeral' ? (amountOf(workspace.size) ?? 0n) : 0n) +
    GIB;
  const requests: Partial<Record<ResourceName, string>> = {};
  const limits: Partial<Record<ResourceName, string>> = {};
  for (const name of RESOURCE_NAMES) {
    const asked = first('limits', name) ?? (name === 'ephemeral-storage' ? local() : undefined);
    const limit = asked === undefined ? undefined : least(asked, ceilingOf(name, project, installation));
    const request = first('requests', name);
    if (limit !== undefined) limits[name] = print(name, limit);
    if (request !== undefined) requests[name] = print(name, least(request, limit));
  }
  return { requests, limits };
};

/** What of `spec.sandbox.resources` is above the ceiling, as a sentence; undefined when nothing is. */
export const aboveCeiling = (session: Session, project: Project, installation: Installation): string | undefined => {
  for (const side of ['requests', 'limits'] as const) {
    for (const name of RESOURCE_NAMES) {
      const asked = amountOf(session.spec.sandbox?.resources?.[side]?.[name]);
      const ceiling = ceilingOf(name, project, installation);
      if (asked === undefined || ceiling === undefined || asked <= ceiling) continue;
      return `spec.sandbox.resources.${side}.${name} ${print(name, asked)} is above the ceiling ${print(name, ceiling)}`;
    }
  }
  return undefined;
};
