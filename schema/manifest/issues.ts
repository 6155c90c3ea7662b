// Issues of zod as sentences for people, with the path of the value that each is about.
// It must not know files or lines.
import { z } from 'zod';
import { didYouMean } from '../rules/nearest-names.ts';
import type { DocumentPath } from './source.ts';

/** One thing wrong with a value. `part` says whether its key or the value itself is meant. */
export type Issue = Readonly<{ path: DocumentPath; part: 'key' | 'value'; message: string }>;

/** `agents.dev.tools[0]` */
export function dotted(path: DocumentPath): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** What a value is, in words. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  return typeof value === 'string' ? 'a text' : typeof value === 'number' ? 'a number' : 'true or false';
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' entries' };

const wording: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is required';
      return `must be ${EXPECTED[issue.expected] ?? issue.expected}, not ${kindOf(issue.input)}`;
    case 'invalid_value': {
      if (issue.input === undefined) return 'is required';
      const values = issue.values.map(String);
      const allowed = values.length === 1 ? String(values[0]) : `one of ${values.join(', ')}`;
      return `must be ${allowed}${typeof issue.input === 'string' ? didYouMean(issue.input, values) : ''}`;
    }
    case 'too_small':
      return `must be at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
    case 'invalid_union':
      return 'has a wrong form';
    case 'invalid_key':
      return `is not a valid name: ${issue.issues.map(({ message }) => message).join('; ')}`;
    default:
      return undefined;
  }
};

/** Keys that an object schema knows at a path; empty when there is no object. */
function knownKeys(schema: z.core.$ZodType, path: DocumentPath): readonly string[] {
  const def = schema._zod.def as unknown as Record<string, unknown> & { type: string };
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return knownKeys(def['innerType'] as z.core.$ZodType, path);
    case 'union':
      return (def['options'] as z.core.$ZodType[]).flatMap((option) => knownKeys(option, path));
    case 'object': {
      const shape = def['shape'] as Record<string, z.core.$ZodType>;
      const [first, ...rest] = path;
      if (first === undefined) return Object.keys(shape);
      const child = Object.hasOwn(shape, first) ? shape[first] : undefined;
      return child === undefined ? [] : knownKeys(child, rest);
    }
    case 'record':
      return path.length === 0 ? [] : knownKeys(def['valueType'] as z.core.$ZodType, path.slice(1));
    case 'array':
      return path.length === 0 ? [] : knownKeys(def['element'] as z.core.$ZodType, path.slice(1));
    default:
      return [];
  }
}

/** `unknown key "secrest"; did you mean "secrets"?` for a key of an object schema at a path. */
function unknownKeyMessage(schema: z.core.$ZodType, path: DocumentPath, key: string): string {
  return `unknown key "${key}"${didYouMean(key, knownKeys(schema, path))}`;
}

/** The value in the shape of a schema, or what is wrong with it, in the words of this file. */
export function checkShape<T>(
  schema: z.ZodType<T>,
  value: unknown,
): Readonly<{ value: T; issues: readonly [] } | { value: undefined; issues: readonly Issue[] }> {
  const result = schema.safeParse(value, { error: wording });
  if (result.success) return { value: result.data, issues: [] };
  const issues = result.error.issues.flatMap((issue): Issue[] => {
    const path = issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step));
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        path: [...path, key],
        part: 'key',
        message: unknownKeyMessage(schema, path, key),
      }));
    }
    return [{ path, part: issue.code === 'invalid_key' ? 'key' : 'value', message: issue.message }];
  });
  return { value: undefined, issues };
}
