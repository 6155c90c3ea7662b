// What a kind is: names, zod schemas of spec and status, printer columns; and the full object around them.
// It must not know any kind of ours, nor how a CRD is written (see `structural.ts` and `crd.ts`).
import { z } from 'zod';
import { type ObjectMetaInput, ObjectMetaSchema } from './object-meta.ts';

/** One printer column; priority 1 shows with `-o wide` only. */
export type PrinterColumn = Readonly<{
  name: string;
  type: 'string' | 'integer' | 'date';
  jsonPath: string;
  priority?: 1 | undefined;
  description?: string | undefined;
}>;

/** What is written down for a kind. */
export type KindDefinition<Spec extends z.ZodType, Status extends z.ZodType> = Readonly<{
  group: string;
  version: string;
  kind: string;
  plural: string;
  shortNames: readonly string[];
  description: string;
  spec: Spec;
  status: Status;
  columns: readonly PrinterColumn[];
}>;

/**
 * A kind as a plain value: its definition, `apiVersion`, and `object`, the zod schema that reads a stored object of it,
 * fills defaults and drops unknown keys. `$input` and `$object` exist for the type checker only and have no value.
 */
export function defineKind<Spec extends z.ZodType, Status extends z.ZodType>(definition: KindDefinition<Spec, Status>) {
  const apiVersion = `${definition.group}/${definition.version}`;
  const object = z.object({
    apiVersion: z.literal(apiVersion),
    kind: z.literal(definition.kind),
    metadata: ObjectMetaSchema,
    spec: definition.spec,
    status: definition.status.optional(),
  });
  type Input = Readonly<{ apiVersion: string; kind: string; metadata: ObjectMetaInput; spec: z.input<Spec> }>;
  return Object.freeze({ ...definition, apiVersion, object } as typeof definition & {
    apiVersion: string;
    object: typeof object;
    readonly $input: Input;
    readonly $object: z.output<typeof object>;
  });
}

/** Any kind, for code that handles all of them. */
export type AnyKind = ReturnType<typeof defineKind<z.ZodType, z.ZodType>>;
