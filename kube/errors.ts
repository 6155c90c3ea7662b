// What the API server answers when it refuses, parsed once, and the translation into our error classes.
// By status and reason, never by message text. Pure.
import {
  type BeeuniError,
  ConflictError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
  UnavailableError,
} from '#base/errors.ts';

/** One field that was refused. */
export type FieldCause = Readonly<{ field: string; reason: string; message: string }>;

/**
 * An answer that is not a success, or no answer. `code` is the HTTP status, 0 without an answer; `reason` is the
 * server's word, or one of ours: `NoAnswer`, `TimedOut`. Always the `cause` of a BeeuniError outside this folder. C17.
 */
export class KubeError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly retryAfterMs: number | undefined;
  readonly causes: readonly FieldCause[];
  constructor(
    code: number,
    reason: string,
    message: string,
    options: Readonly<{ retryAfterMs?: number | undefined; causes?: readonly FieldCause[]; cause?: unknown }> = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'KubeError';
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
    this.causes = options.causes ?? [];
  }
}

const MAX_CAUSES = 20;
const MAX_MESSAGE = 1_024;
/** Longest pause that an answer may ask for. Units: milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000;

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const text = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && value !== '' ? value : otherwise;

/** Pause that a `Retry-After` header asks for. Units: milliseconds. Bounds: 0 to 3_600_000. Undefined when it asks none. */
export const readRetryAfterMs = (header: string | undefined, nowMs: number): number | undefined => {
  if (header === undefined) return undefined;
  const afterMs = /^\d+$/.test(header.trim()) ? Number(header) * 1_000 : Date.parse(header) - nowMs;
  return Number.isFinite(afterMs) ? Math.min(Math.max(afterMs, 0), MAX_RETRY_AFTER_MS) : undefined;
};

const STRICT = 'strict decoding error: ';

/** The message of a cause without the value that it refuses, where that is an object: it may be the whole one that was sent. */
const withoutValue = (message: string): string => {
  const strict = message.lastIndexOf(STRICT);
  if (strict >= 0) return message.slice(strict);
  return message.replace(/^Invalid value: "?[{[][\s\S]*[}\]]"?(?=: )/, 'Invalid value');
};

const readCauses = (details: unknown): FieldCause[] => {
  const causes = isRecord(details) && Array.isArray(details['causes']) ? details['causes'] : [];
  return causes
    .filter(isRecord)
    .slice(0, MAX_CAUSES)
    .map((cause) => ({
      field: text(cause['field'], ''),
      reason: text(cause['reason'], ''),
      message: withoutValue(text(cause['message'], '')).slice(0, MAX_MESSAGE),
    }));
};

/** The text without the object: a patch with an unknown field is refused with the whole patched object in front. */
const withoutPatched = (message: string): string =>
  /^\s*"" is invalid: patch: /.test(message) && message.includes(STRICT)
    ? message.slice(message.lastIndexOf(STRICT))
    : message;

/** The error that a `Status` object describes; any other body gives an error with the HTTP status alone. */
export const kubeErrorFromStatus = (code: number, status: unknown, retryAfterMs?: number): KubeError => {
  if (!isRecord(status) || status['kind'] !== 'Status') {
    return new KubeError(code, `Http${code}`, `the API server answered ${code}`, { retryAfterMs });
  }
  const details = isRecord(status['details']) ? status['details'] : {};
  const asked = details['retryAfterSeconds'];
  return new KubeError(
    typeof status['code'] === 'number' ? status['code'] : code,
    text(status['reason'], `Http${code}`),
    withoutPatched(text(status['message'], `the API server answered ${code}`)).slice(0, MAX_MESSAGE),
    {
      retryAfterMs: retryAfterMs ?? (typeof asked === 'number' && asked > 0 ? asked * 1_000 : undefined),
      causes: readCauses(details),
    },
  );
};

/** The error that an answer with its body as text describes. */
export const readKubeError = (code: number, body: string, retryAfterMs?: number): KubeError => {
  let status: unknown;
  try {
    status = JSON.parse(body);
  } catch {
    status = undefined;
  }
  return kubeErrorFromStatus(code, status, retryAfterMs);
};

/** True for a failure of the server itself, or of the way to it: wait and try again. Source: K38. */
export const isServerFailure = (error: KubeError): boolean =>
  error.code === 0 || error.code === 429 || (error.code >= 500 && error.code !== 501);

/**
 * One of our classes for an error of the API server; `what` says what was tried, as in "create Pod a/b".
 * A refusal of our own credentials is not the caller's fault and gives UnavailableError.
 */
export const toBeeuniError = (error: KubeError, what: string): BeeuniError => {
  const detail = `${what}: ${error.code} ${error.reason}: ${error.message}`;
  const details = error.causes.length === 0 ? undefined : { causes: error.causes };
  const options = { cause: error, detail, details };
  switch (error.code) {
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return new InvalidError('resource_rejected', error.message, options);
    case 401:
      return new UnavailableError('api_server_unavailable', 'the API server does not accept our credentials', options);
    case 403:
      return new ForbiddenError('forbidden', error.message, options);
    case 404:
      return new NotFoundError('not_found', error.message, options);
    case 409:
      return error.reason === 'AlreadyExists'
        ? new ConflictError('already_exists', error.message, options)
        : new ConflictError('conflict', error.message, options);
    default:
      return new UnavailableError('api_server_unavailable', 'the Kubernetes API server could not be reached', {
        ...options,
        retryAfterMs: error.retryAfterMs,
      });
  }
};

/** The API server's error behind an error, or undefined when it has another origin. */
export const kubeErrorOf = (error: unknown): KubeError | undefined => {
  let at: unknown = error;
  for (let depth = 0; at instanceof Error && depth < 8; depth += 1) {
    if (at instanceof KubeError) return at;
    at = at.cause;
  }
  return undefined;
};

const hasCode = (code: number) => (error: unknown) => kubeErrorOf(error)?.code === code;

/** 404: there is no such object. */
export const isNotFound = hasCode(404);
/** 409 on a create. After a time-out it usually means "it was me": read, compare the owner's uid, go on. K22. */
export const isAlreadyExists = (error: unknown): boolean => kubeErrorOf(error)?.reason === 'AlreadyExists';
/** 409 of any other kind: a precondition or an owner of fields. */
export const isConflict = (error: unknown): boolean => hasCode(409)(error) && !isAlreadyExists(error);
/** 410, as a status or inside a watch: the resource version or the page token is too old. C4. */
export const isExpired = hasCode(410);
