// JSON logs, one line per record, bounded in size and without secrets. Must not know what is logged.
// A record has a constant message and fields; whole objects and prompt text are never fields.
import { pino } from 'pino';
import { BeeuniError } from './errors.ts';

/** Fields of a record; names come from one table: project, session, namespace, reconcileId, turnId, durationMs, err ... */
export type LogFields = Readonly<Record<string, unknown>>;

/** A logger. `child` adds fields to every record. */
export type Logger = Readonly<{
  debug: (message: string, fields?: LogFields) => void;
  info: (message: string, fields?: LogFields) => void;
  warn: (message: string, fields?: LogFields) => void;
  error: (message: string, fields?: LogFields) => void;
  child: (fields: LogFields) => Logger;
}>;

/** Levels that a process may be configured with. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
/** One of the levels. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Longest string that a record keeps. Units: characters. */
const MAX_STRING = 2_048;
const MAX_ITEMS = 32;
const MAX_DEPTH = 4;
const SECRET_KEY =
  /(authorization|cookie|token|secret|password|passwd|credential|api_?key|private_?key|database_?url)/i;
const KEY_OF_METADATA = /^(syncToken|restartToken|maxTokens|inputTokens|outputTokens|tokens|secretName)$/;
const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi, '$1 [redacted]'],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g, '[redacted]'],
  [/\b(sk|pk|ghp|gho|ghs|github_pat|glpat|xox[abp])[-_][A-Za-z0-9_-]{12,}/g, '[redacted]'],
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, '$1[redacted]@'],
];

/** The text without what looks like a credential, at most 2,048 characters. */
export const redactText = (text: string): string => {
  let result = text.length > MAX_STRING ? `${text.slice(0, MAX_STRING)}…` : text;
  for (const [pattern, replacement] of SECRET_TEXT) result = result.replace(pattern, replacement);
  return result;
};

const describeError = (error: Error, depth: number): Record<string, unknown> => ({
  name: error.name,
  message: redactText(error.message),
  ...(error instanceof BeeuniError ? { code: error.code } : { stack: redactText(error.stack ?? '') }),
  ...(error instanceof BeeuniError && error.detail !== undefined ? { detail: redactText(error.detail) } : {}),
  ...(error.cause === undefined || depth >= MAX_DEPTH ? {} : { cause: bounded(error.cause, depth + 1) }),
});

const bounded = (value: unknown, depth: number): unknown => {
  if (typeof value === 'string') return redactText(value);
  if (value === null || typeof value !== 'object') return typeof value === 'bigint' ? value.toString() : value;
  if (value instanceof Error) return describeError(value, depth);
  if (depth >= MAX_DEPTH) return '[deep]';
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => bounded(item, depth + 1));
  return boundedFields(value as LogFields, depth + 1);
};

const boundedFields = (fields: LogFields, depth: number): Record<string, unknown> => {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields).slice(0, MAX_ITEMS)) {
    const secret =
      SECRET_KEY.test(key) && !KEY_OF_METADATA.test(key) && typeof value !== 'number' && typeof value !== 'boolean';
    result[key] = secret ? '[redacted]' : bounded(value, depth);
  }
  return result;
};

type Level = LogLevel;

/** A logger that writes lines to `write` (standard output when absent). `base` fields are in every record. */
export const createLogger = (
  options: Readonly<{ level: LogLevel; base?: LogFields; write?: (line: string) => void }>,
): Logger => {
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    messageKey: 'message',
    // Errors are described here already.
    serializers: { err: (value: unknown) => value },
    formatters: { level: (label: string) => ({ level: label }) },
  };
  const { write } = options;
  const inner = write === undefined ? pino(settings) : pino(settings, { write });
  const make = (own: LogFields): Logger => {
    const record =
      (level: Level) =>
      (message: string, fields: LogFields = {}): void => {
        if (inner.isLevelEnabled(level)) inner[level]({ ...own, ...boundedFields(fields, 0) }, redactText(message));
      };
    return {
      debug: record('debug'),
      info: record('info'),
      warn: record('warn'),
      error: record('error'),
      child: (fields) => make({ ...own, ...boundedFields(fields, 0) }),
    };
  };
  return make(boundedFields(options.base ?? {}, 0));
};
