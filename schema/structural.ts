// From zod to the two schemas that others read: the structural OpenAPI schema that the API server accepts, and a strict
// JSON Schema for editors. It throws on everything that it cannot translate, so that no rule is lost silently.
// It must not know any kind. Source: 10-kubernetes §1 "From zod to a structural schema".
import { z } from 'zod';
import type { CelRule } from './primitives.ts';

/** A structural schema node: JSON, ready to be put into a CustomResourceDefinition. */
export type StructuralNode = { [key: string]: unknown };

type EmittedNode = Record<string, unknown>;

const KEPT = new Set([
  'type',
  'description',
  'format',
  'default',
  'enum',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'maxProperties',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-validations',
]);
const WALKED = new Set(['properties', 'items', 'additionalProperties', 'required', 'anyOf']);
const SAFE_INTEGER = Number.MAX_SAFE_INTEGER;
/** What JSON Schema cannot say, or says differently: such a zod node would change its meaning on the way. */
const UNTRANSLATABLE = new Set([
  'transform',
  'pipe',
  'custom',
  'lazy',
  'any',
  'unknown',
  'nullable',
  'intersection',
  'catch',
]);

function fail(path: string, what: string): never {
  throw new Error(`schema node ${path === '' ? '(root)' : path}: ${what}`);
}

/** Throws for zod nodes that have no counterpart: refinements, transforms, unknown values. */
function refuseUntranslatable(node: z.core.$ZodType, path: string): void {
  const { type, checks } = node._zod.def;
  if (UNTRANSLATABLE.has(type)) fail(path, `zod ${type} has no structural form`);
  for (const check of checks ?? []) {
    const kind = check._zod.def.check;
    if (kind === 'custom' || kind === 'overwrite') fail(path, 'a refinement has no structural form; write a CEL rule');
  }
}

function emit(schema: z.ZodType, target: 'openapi-3.0' | 'draft-2020-12'): EmittedNode {
  return z.toJSONSchema(schema, {
    target,
    io: 'input',
    override: ({ zodSchema, path }) => {
      if (target === 'openapi-3.0') refuseUntranslatable(zodSchema, path.join('.'));
    },
  }) as EmittedNode;
}

function asNode(value: unknown, path: string): EmittedNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as EmittedNode)
    : fail(path, 'is not a schema');
}

/** Joins `anyOf: [string, integer]` into one node with the bounds of both; the API server takes either. */
function intOrString(node: EmittedNode, path: string): EmittedNode {
  const { anyOf, ...rest } = node;
  const branches = Array.isArray(anyOf) ? anyOf.map((branch) => asNode(branch, path)) : [];
  const types = new Set(branches.map((branch) => branch['type']));
  if (branches.length !== 2 || !types.has('integer') || !types.has('string'))
    fail(path, 'int-or-string needs exactly one string and one integer');
  return Object.assign({}, ...branches, rest, { type: undefined });
}

function inclusiveBound(node: EmittedNode, bound: 'minimum' | 'maximum', path: string): number | undefined {
  const value = node[bound];
  if (typeof value !== 'number' || Math.abs(value) === SAFE_INTEGER) return undefined;
  const exclusive = node[bound === 'minimum' ? 'exclusiveMinimum' : 'exclusiveMaximum'] === true;
  if (!exclusive) return value;
  if (node['type'] !== 'integer') fail(path, 'an exclusive bound of a fraction cannot be made inclusive');
  return bound === 'minimum' ? value + 1 : value - 1;
}

/** K4 and K8: everything is bounded, and every list says how it is merged. */
function requireBounds(node: StructuralNode, path: string): void {
  const has = (key: string) => node[key] !== undefined;
  switch (node['type']) {
    case 'string':
      if (!has('maxLength') && !has('enum')) fail(path, 'a string needs maxLength or enum');
      return;
    case 'integer':
      if (!has('minimum') || !has('maximum') || !has('format'))
        fail(path, 'an integer needs minimum, maximum and format');
      return;
    case 'array':
      if (!has('maxItems')) fail(path, 'a list needs maxItems');
      if (!has('x-kubernetes-list-type')) fail(path, 'a list needs x-kubernetes-list-type');
      return;
    case 'object':
      if (has('additionalProperties') && !has('maxProperties')) fail(path, 'a map needs maxProperties');
      return;
    case 'boolean':
      return;
    default:
      if (!has('x-kubernetes-int-or-string')) fail(path, `type ${String(node['type'])} has no structural form`);
      if (!has('maxLength')) fail(path, 'an int-or-string needs maxLength');
  }
}

function convert(emitted: EmittedNode, path: string): StructuralNode {
  const source = emitted['x-kubernetes-int-or-string'] === true ? intOrString(emitted, path) : emitted;
  const node: StructuralNode = {};
  for (const [key, value] of Object.entries(source)) {
    if (value === undefined || key === 'exclusiveMinimum' || key === 'exclusiveMaximum') continue;
    if (!KEPT.has(key) && !WALKED.has(key)) fail(path, `keyword ${key} has no structural form`);
    if (key === 'anyOf') fail(path, 'a union has no structural form');
    if (KEPT.has(key)) node[key] = value;
  }
  for (const bound of ['minimum', 'maximum'] as const) {
    const value = inclusiveBound(source, bound, path);
    if (value === undefined) delete node[bound];
    else node[bound] = value;
  }
  if (node['format'] === 'date-time') delete node['pattern'];
  if (source['properties'] !== undefined) {
    const properties = Object.entries(asNode(source['properties'], path));
    node['properties'] = Object.fromEntries(
      properties.map(([name, child]) => [name, convertField(asNode(child, path), `${path}.${name}`)]),
    );
    if (source['required'] !== undefined) node['required'] = source['required'];
  }
  if (source['items'] !== undefined) node['items'] = convert(asNode(source['items'], path), `${path}[]`);
  if (source['additionalProperties'] !== undefined) {
    if (source['additionalProperties'] === false) fail(path, 'a strict object would be refused after a rollback');
    node['additionalProperties'] = convert(asNode(source['additionalProperties'], path), `${path}{}`);
  }
  requireBounds(node, path);
  return node;
}

/** K11: what `kubectl explain` prints. */
const DESCRIPTION_MAX = 160;

function convertField(emitted: EmittedNode, path: string): StructuralNode {
  const node = convert(emitted, path);
  const description = node['description'];
  if (typeof description !== 'string' || description === '') fail(path, 'needs a description');
  if (description.length > DESCRIPTION_MAX)
    fail(path, `description has ${description.length} of ${DESCRIPTION_MAX} characters`);
  return node;
}

/**
 * The structural schema of a zod object, with CEL rules, list types, formats and defaults from its metadata.
 * Throws an Error that names the node for whatever has no structural form, and for missing bounds, list types and descriptions.
 */
export function toStructural(schema: z.ZodType, root: string): StructuralNode {
  return convert(emit(schema, 'openapi-3.0'), root);
}

/** Every CEL rule of a structural schema with the path of its node; for tests that cover each rule. */
export function celRulesOf(node: StructuralNode, path = ''): readonly Readonly<{ path: string; rule: CelRule }>[] {
  const own = (node['x-kubernetes-validations'] as readonly CelRule[] | undefined) ?? [];
  const properties = Object.entries((node['properties'] as Record<string, StructuralNode> | undefined) ?? {});
  const children = properties.flatMap(([name, child]) => celRulesOf(child, path === '' ? name : `${path}.${name}`));
  const items = node['items'] === undefined ? [] : celRulesOf(node['items'] as StructuralNode, `${path}[]`);
  return [...own.map((rule) => ({ path, rule })), ...children, ...items];
}

function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== 'object' || value === null) return value;
  const node = Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !key.startsWith('x-kubernetes-') && key !== '$schema' && key !== 'propertyNames')
      .map(([key, child]) => [key, key === 'default' || key === 'enum' ? child : strict(child)]),
  );
  if (node['type'] === 'object' && node['properties'] !== undefined && node['additionalProperties'] === undefined) {
    node['additionalProperties'] = false;
  }
  return node;
}

/** A JSON Schema (draft 2020-12) of a zod object that refuses unknown keys: what an editor should underline. */
export function strictJsonSchema(schema: z.ZodType): Record<string, unknown> {
  return strict(emit(schema, 'draft-2020-12')) as Record<string, unknown>;
}
