// A value that fits a zod schema, made from its JSON Schema: for tests that walk over all routes and must get past the
// reading of bodies, or answer what a route declares. Must not know any route.
import { z } from 'zod';

type Json = Readonly<Record<string, unknown>>;

/** Texts that are tried for a string with a form. */
const TEXTS = [
  'x',
  'thing',
  'acme',
  'acme/large',
  'project',
  'ab12',
  '2026-11-30T12:00:00.000Z',
  '2026-11-30',
  'https://acme.example/v1',
  '00000000-0000-4000-8000-000000000000',
];

const textFor = (schema: Json): string => {
  const pattern = typeof schema['pattern'] === 'string' ? new RegExp(schema['pattern'], 'u') : /./;
  const least = Number(schema['minLength'] ?? 0);
  const most = Number(schema['maxLength'] ?? 1e9);
  const fits = (text: string): boolean => text.length >= least && text.length <= most && pattern.test(text);
  return TEXTS.find(fits) ?? [40, 64].map((length) => 'a'.repeat(length)).find(fits) ?? 'x'.repeat(Math.max(1, least));
};

const sample = (schema: Json): unknown => {
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    const [first] = (schema[key] as readonly Json[] | undefined) ?? [];
    if (first !== undefined) return sample(first);
  }
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type'];
  switch (type) {
    case 'object': {
      const properties = (schema['properties'] ?? {}) as Record<string, Json>;
      const required = (schema['required'] ?? []) as readonly string[];
      return Object.fromEntries(required.map((name) => [name, sample(properties[name] ?? {})]));
    }
    case 'array':
      return Array.from({ length: Number(schema['minItems'] ?? 0) }, () => sample((schema['items'] ?? {}) as Json));
    case 'string':
      return textFor(schema);
    case 'integer':
    case 'number':
      return Number(schema['minimum'] ?? 1);
    case 'boolean':
      return true;
    default:
      return null;
  }
};

/** A value for the schema, as a client sends it (`input`) or a handler gives it back (`output`). Throws when none was found. */
export const sampleOf = (schema: z.ZodType, io: 'input' | 'output'): unknown => {
  const value = sample(z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json);
  const result = schema.safeParse(value);
  if (!result.success) throw new Error(`no sample for ${JSON.stringify(value)}: ${result.error.message}`);
  return value;
};
