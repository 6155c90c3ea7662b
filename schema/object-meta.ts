// Metadata of a Kubernetes object, as far as Beeuni reads it, and the full object around a spec and a status.
// It must not know any kind.
import { z } from 'zod';

/** An owner reference. */
export const OwnerReferenceSchema = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().optional(),
  blockOwnerDeletion: z.boolean().optional(),
});

/** Metadata of an object that the API server has stored; maps and lists are filled, `managedFields` is dropped. */
export const ObjectMetaSchema = z.object({
  name: z.string(),
  namespace: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.int().default(1),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).default({}),
  annotations: z.record(z.string(), z.string()).default({}),
  finalizers: z.array(z.string()).default([]),
  ownerReferences: z.array(OwnerReferenceSchema).default([]),
});

/** Metadata as people write it. */
export type ObjectMetaInput = Readonly<{
  name: string;
  namespace?: string | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  annotations?: Readonly<Record<string, string>> | undefined;
}>;
