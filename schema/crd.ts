// The CustomResourceDefinition of a kind, and its JSON Schema for editors. Pure: a kind in, JSON out.
// It must not know any kind of ours. Source: K1 to K4, K8.
import type { AnyKind, PrinterColumn } from './define-kind.ts';
import { DNS_LABEL_PATTERN } from './primitives.ts';
import { type StructuralNode, strictJsonSchema, toStructural } from './structural.ts';

/** A CustomResourceDefinition as JSON. */
export type CustomResourceDefinition = Readonly<{
  apiVersion: 'apiextensions.k8s.io/v1';
  kind: 'CustomResourceDefinition';
  metadata: Readonly<{ name: string }>;
  spec: Readonly<Record<string, unknown>>;
}>;

/** All kinds answer to `kubectl get beeuni`. */
const CATEGORY = 'beeuni';

const API_VERSION_TEXT = 'Version of the schema of this object.';
const KIND_TEXT = 'Kind of this object.';

/** Schema of the whole object. `metadata.name` is a DNS label of at most 46 characters. Source: K3. */
export function openApiSchemaOf(kind: AnyKind): StructuralNode {
  return {
    type: 'object',
    description: kind.description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: API_VERSION_TEXT },
      kind: { type: 'string', description: KIND_TEXT },
      metadata: {
        type: 'object',
        properties: { name: { type: 'string', maxLength: 46, pattern: DNS_LABEL_PATTERN.source } },
      },
      spec: { description: 'What is asked for.', ...toStructural(kind.spec, 'spec') },
      status: { description: 'What is. Written by the operator only.', ...toStructural(kind.status, 'status') },
    },
  };
}

function printerColumn({ name, type, jsonPath, priority, description }: PrinterColumn): Record<string, unknown> {
  return {
    name,
    type,
    jsonPath,
    ...(priority === undefined ? {} : { priority }),
    ...(description === undefined ? {} : { description }),
  };
}

/** The CustomResourceDefinition of a kind: namespaced, one version, status subresource, no conversion webhook. Source: K1, K2. */
export function customResourceDefinition(kind: AnyKind): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${kind.group}` },
    spec: {
      group: kind.group,
      scope: 'Namespaced',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        shortNames: [...kind.shortNames],
        categories: [CATEGORY],
      },
      conversion: { strategy: 'None' },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: openApiSchemaOf(kind) },
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns.map(printerColumn),
        },
      ],
    },
  };
}

/** JSON Schema of a kind as people write it: no status, and unknown fields of the spec are refused. */
export function editorSchemaOf(kind: AnyKind): Record<string, unknown> {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: kind.kind,
    description: kind.description,
    type: 'object',
    required: ['apiVersion', 'kind', 'metadata', 'spec'],
    properties: {
      apiVersion: { type: 'string', enum: [kind.apiVersion], description: API_VERSION_TEXT },
      kind: { type: 'string', enum: [kind.kind], description: KIND_TEXT },
      metadata: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string', minLength: 1, maxLength: 46, pattern: DNS_LABEL_PATTERN.source },
          namespace: { type: 'string', maxLength: 63 },
          labels: { type: 'object', additionalProperties: { type: 'string' } },
          annotations: { type: 'object', additionalProperties: { type: 'string' } },
        },
      },
      spec: strictJsonSchema(kind.spec),
    },
    additionalProperties: false,
  };
}
