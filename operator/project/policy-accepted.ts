// PolicyAccepted: whether the installation allows what a Project asks for. Pure; from the spec alone.
// Must not know the control plane. Source: 10-kubernetes §2, V5.
import type { ConditionNote } from '#kube/conditions.ts';
import type { Installation } from '#schema/installation.ts';
import type { Quantity } from '#schema/primitives.ts';
import type { ProjectSpec } from '#schema/resources/project.ts';
import { reachOf } from '../runtime/cidr.ts';
import { parseQuantity } from '../runtime/quantity.ts';

const refused = (reason: string, message: string): ConditionNote => ({
  type: 'PolicyAccepted',
  status: 'False',
  reason,
  message,
});

const imageProblem = (field: string, image: string, installation: Installation): string | undefined => {
  const { allowedPrefixes, requireDigest } = installation.sandbox.imagePolicy;
  const isUnder = allowedPrefixes.length === 0 || allowedPrefixes.some((prefix) => image.startsWith(prefix));
  if (!isUnder) return `${field} ${image} is under none of the allowed prefixes: ${allowedPrefixes.join(', ')}`;
  // A pattern names no single image: each template's image is looked at when it is used.
  if (requireDigest && !image.endsWith('*') && !image.includes('@sha256:')) return `${field} ${image} has no digest`;
  return undefined;
};

const images = (spec: ProjectSpec, installation: Installation): string | undefined => {
  const { image, allowedImages } = spec.sandbox ?? {};
  const own = image === undefined ? undefined : imageProblem('spec.sandbox.image', image, installation);
  if (own !== undefined) return own;
  for (const pattern of allowedImages ?? []) {
    const problem = imageProblem('spec.sandbox.allowedImages', pattern, installation);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

const runtimeClass = (spec: ProjectSpec, installation: Installation): string | undefined => {
  const name = spec.sandbox?.runtimeClassName;
  const { allowed } = installation.sandbox.runtimeClass;
  if (name === undefined || allowed.includes(name)) return undefined;
  return `spec.sandbox.runtimeClassName ${name} is not allowed; allowed are ${allowed.join(', ') || 'none'}`;
};

const egress = (spec: ProjectSpec, installation: Installation): string | undefined => {
  for (const { cidr } of spec.egress.allow ?? []) {
    const reach = reachOf(cidr, installation.sandbox.network);
    if (!reach.allowed)
      return `spec.egress.allow ${cidr} lies in ${reach.blockedBy}, which the installation does not allow`;
  }
  return undefined;
};

const RESOURCE_NAMES = ['cpu', 'memory', 'ephemeral-storage'] as const;

const above = (asked: Quantity | undefined, ceiling: Quantity | undefined): boolean => {
  const [a, b] = [asked, ceiling].map((quantity) => (quantity === undefined ? undefined : parseQuantity(quantity)));
  return a !== undefined && b !== undefined && a > b;
};

const resources = (spec: ProjectSpec, installation: Installation): string | undefined => {
  const { maxResources: ceiling } = installation.sandbox;
  const lists = {
    'spec.sandbox.resources.requests': spec.sandbox?.resources?.requests,
    'spec.sandbox.resources.limits': spec.sandbox?.resources?.limits,
    'spec.sandbox.maxResources': spec.sandbox?.maxResources,
  };
  for (const [field, list] of Object.entries(lists)) {
    for (const name of RESOURCE_NAMES) {
      if (above(list?.[name], ceiling[name])) {
        return `${field}.${name} ${list?.[name]} is above the installation's ceiling ${ceiling[name]}`;
      }
    }
  }
  return undefined;
};

/** The condition. */
export const policyAccepted = (spec: ProjectSpec, installation: Installation): ConditionNote => {
  const image = images(spec, installation);
  if (image !== undefined) return refused('ImageNotAllowed', image);
  const runtime = runtimeClass(spec, installation);
  if (runtime !== undefined) return refused('RuntimeClassNotAllowed', runtime);
  const network = egress(spec, installation);
  if (network !== undefined) return refused('EgressNotAllowed', network);
  const resource = resources(spec, installation);
  if (resource !== undefined) return refused('ResourcesNotAllowed', resource);
  const message = 'the installation allows what the Project asks for';
  return { type: 'PolicyAccepted', status: 'True', reason: 'Accepted', message };
};
