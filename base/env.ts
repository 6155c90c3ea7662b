// Reads the environment of a process into one frozen, typed value, and prints it without secrets.
// Must not know any single name; each config.ts has a zod object.
import { z } from 'zod';
import { InvalidError } from './errors.ts';

/** Names that must be known when they begin with this. */
const OURS = 'BEEUNI_';
/** Kubernetes adds these for a Service whose name begins like ours; they are nobody's setting. */
const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT|SERVICE_PORT_.+|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
const SECRET_NAME = /(TOKEN|SECRET|PASSWORD|KEY|CREDENTIAL|DATABASE_URL)$/;

/** Environment variables: `process.env`, handed over by a config.ts. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One setting, for the reference page. */
export type EnvName = Readonly<{ name: string; description: string; required: boolean; default: unknown }>;

const freeze = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
};

/**
 * The settings that `schema` describes, its keys being the names. An empty variable is an absent one. Throws
 * InvalidError `invalid_configuration` that lists every problem: wrong values, missing names, unknown `BEEUNI_*` names.
 */
export const readEnvironment = <S extends z.ZodObject>(schema: S, environment: Environment): Readonly<z.output<S>> => {
  const names = Object.keys(schema.shape);
  const given = Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name];
      return value === undefined || value === '' ? [] : [[name, value]];
    }),
  );
  const problems = Object.keys(environment)
    .filter((name) => name.startsWith(OURS) && !names.includes(name) && !SERVICE_LINK.test(name))
    .map((name) => `${name}: unknown name`);
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const isMissing = !(String(issue.path[0]) in given);
      problems.push(`${issue.path.join('.')}: ${isMissing ? 'is required' : issue.message}`);
    }
  }
  if (!parsed.success || problems.length > 0) {
    throw new InvalidError('invalid_configuration', `the environment is wrong:\n  ${problems.sort().join('\n  ')}`);
  }
  return freeze(parsed.data);
};

/** The settings for a log: secrets and credentials in URLs are left out. */
export const redactSettings = (settings: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      SECRET_NAME.test(name) && value !== undefined ? '[redacted]' : value,
    ]),
  );

/** The description of a type, or of the one that it wraps with a default or as optional. */
const descriptionOf = (type: z.ZodType): string => {
  if (type.description !== undefined) return type.description;
  const { innerType } = type.def as { innerType?: z.ZodType };
  return innerType === undefined ? '' : descriptionOf(innerType);
};

/** The names of a schema for the reference page, in the order of the schema. */
export const describeEnvironment = (schema: z.ZodObject): EnvName[] =>
  Object.entries(schema.shape).map(([name, field]) => {
    const type = field as z.ZodType;
    const absent = type.safeParse(undefined);
    return { name, description: descriptionOf(type), required: !absent.success, default: absent.data };
  });
