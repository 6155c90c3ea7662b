// Who owns a child: ours, nobody's or somebody else's, by uid and never by name or label. Pure. Source: K22.
import { apiVersionOf, type ObjectMeta, type OwnerReference, type ResourceType } from './resource-types.ts';

/** The answer of the three-way ownership check. */
export type Ownership = 'ours' | 'nobody' | 'other';

/** Whose child it is, by its controller reference. */
export const ownershipOf = (child: ObjectMeta, ownerUid: string): Ownership => {
  const controller = child.ownerReferences?.find((owner) => owner.controller === true);
  if (controller === undefined) return 'nobody';
  return controller.uid === ownerUid ? 'ours' : 'other';
};

/** True when the controller reference of the child has the owner's uid. */
export const isOwnedBy = (child: ObjectMeta, ownerUid: string): boolean => ownershipOf(child, ownerUid) === 'ours';

/** The controller reference that a child of ours carries. `owner` needs a uid; throws TypeError without. */
export const controllerReference = (type: ResourceType, owner: ObjectMeta): OwnerReference => {
  if (owner.uid === undefined) throw new TypeError('an owner without a uid cannot be referred to');
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    name: owner.name,
    uid: owner.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
};
