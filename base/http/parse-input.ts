// Reads params, query and body of a request with their schemas, and words what is wrong with them: our sentences, no
// patterns, no echo of values. Must not know any route. Source: 20-control-plane §2.
import type { z } from 'zod';
import { InvalidError } from '#base/errors.ts';
import { unknownPaths } from '#schema/unknown-paths.ts';

/** One problem: where (for example `body.parts[0].text`), and a sentence without its subject ("is required"). */
export type InputProblem = Readonly<{ path: string; message: string }>;

const MAX_PROBLEMS = 20;

const NOUNS: Readonly<Record<string, string>> = { record: 'object', int: 'whole number', nan: 'number', date: 'time' };

const withArticle = (expected: string): string => {
  const noun = NOUNS[expected] ?? expected;
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`;
};

const UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  set: ['entry', 'entries'],
  map: ['entry', 'entries'],
  object: ['field', 'fields'],
  record: ['field', 'fields'],
};

const counted = (count: number | bigint, origin: string): string => {
  const unit = UNITS[origin];
  return unit === undefined ? `${count}` : `${count} ${unit[Number(count) === 1 ? 0 : 1]}`;
};

const FORMATS: Readonly<Record<string, string>> = {
  datetime: 'must be a time as 2026-11-30T12:41:07Z',
  date: 'must be a date as 2026-11-30',
  url: 'must be a URL',
  uuid: 'must be a UUID',
};

/** The keys that a record takes; none for anything else. */
const knownKeys = (schema: unknown): readonly string[] => {
  const keyType = (schema as { keyType?: { options?: readonly unknown[] } } | undefined)?.keyType;
  return keyType?.options?.map(String) ?? [];
};

/** Words one issue of zod; an `error` text of the schema itself goes before this. */
const wordIssue = (issue: z.core.$ZodRawIssue): string => {
  if (issue.input === undefined && issue.code !== 'unrecognized_keys') return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${withArticle(String(issue.expected))}`;
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty';
      return `must be at least ${counted(issue.minimum, issue.origin)}`;
    case 'too_big':
      return `must be at most ${counted(issue.maximum, issue.origin)}`;
    case 'invalid_format':
      return FORMATS[issue.format] ?? 'does not have the form that is asked for';
    case 'invalid_value':
      return issue.values.length === 1
        ? `must be ${String(issue.values[0])}`
        : `must be one of ${issue.values.slice(0, 32).map(String).join(', ')}`;
    case 'unrecognized_keys': {
      const known = knownKeys(issue.inst);
      const what = `has the unknown field ${issue.keys[0]?.slice(0, 64) ?? ''}`;
      return known.length === 0 ? what : `${what}; known are ${known.slice(0, 32).join(', ')}`;
    }
    case 'invalid_union':
      return 'has none of the forms that are allowed here';
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_key':
      return 'has a key that is not allowed';
    default:
      return 'is not allowed';
  }
};

const pathText = (root: string, path: readonly PropertyKey[]): string => {
  let result = root;
  for (const step of path) result += typeof step === 'number' ? `[${step}]` : `.${String(step).slice(0, 64)}`;
  return result;
};

const refuse = (code: 'invalid_request' | 'unknown_field', problems: readonly InputProblem[]): never => {
  const [first] = problems;
  const more = problems.length - 1;
  const message = first === undefined ? 'the input is not allowed' : `${first.path} ${first.message}`;
  throw new InvalidError(code, more > 0 ? `${message} (and ${more} more)` : message, { details: { problems } });
};

/**
 * The input as the schema reads it. `root` names it in messages: `path`, `query` or `body`.
 * Throws InvalidError `invalid_request`, or `unknown_field` for a field that the schema does not know; both with
 * `details.problems`, at most 20.
 */
export const parseInput = <S extends z.ZodType>(root: string, schema: S, input: unknown): z.output<S> => {
  const result = schema.safeParse(input, { error: wordIssue });
  if (!result.success) {
    const problems = result.error.issues
      .slice(0, MAX_PROBLEMS)
      .map((issue) => ({ path: pathText(root, issue.path), message: issue.message }));
    const areUnknown = result.error.issues.every(({ code }) => code === 'unrecognized_keys');
    return refuse(areUnknown ? 'unknown_field' : 'invalid_request', problems);
  }
  const unknown = unknownPaths(input, result.data, MAX_PROBLEMS);
  if (unknown.length > 0) {
    refuse(
      'unknown_field',
      unknown.map((path) => ({ path: `${root}.${path.slice(0, 256)}`, message: 'is not a field that is known' })),
    );
  }
  return result.data;
};
