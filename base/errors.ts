// The error classes of every part, cut by who acts next. Must not know HTTP frameworks, Kubernetes or SQL:
// their errors are translated at the edge of their own room.
import { PROBLEMS, type ProblemCode, type ProblemCodeOf, type ProblemGroup } from '#schema/problem.ts';

/** What an error carries besides its code and message. `detail` is for logs only and never leaves the process. */
export type ErrorOptions = Readonly<{
  cause?: unknown;
  detail?: string | undefined;
  /** Shown to the caller as `details`; plain JSON, no secrets. */
  details?: Readonly<Record<string, unknown>> | undefined;
}>;

/**
 * Base of all errors of ours. `code` comes from the closed list, `message` is lowercase and safe to show to the caller.
 * Source: house rule on errors, docs/decisions/0005.
 */
export abstract class BeeuniError extends Error {
  readonly code: ProblemCode;
  readonly detail: string | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  constructor(code: ProblemCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.detail = options.detail;
    this.details = options.details;
  }
  /** HTTP status of the code. */
  get status(): number {
    return PROBLEMS[this.code].status;
  }
  /** Group of the code: who acts next. */
  get group(): ProblemGroup {
    return PROBLEMS[this.code].group;
  }
}

/** The author changes the input. HTTP 400, 413, 415, 422. */
export class InvalidError extends BeeuniError {
  declare readonly code: ProblemCodeOf<'invalid'>;
  constructor(code: ProblemCodeOf<'invalid'>, message: string, options?: ErrorOptions) {
    super(code, message, options);
  }
}

/** The caller sends a valid credential. HTTP 401. */
export class UnauthenticatedError extends BeeuniError {
  constructor(message: string, options?: ErrorOptions) {
    super('unauthenticated', message, options);
  }
}

/** The caller gets access. HTTP 403. */
export class ForbiddenError extends BeeuniError {
  constructor(code: ProblemCodeOf<'forbidden'>, message: string, options?: ErrorOptions) {
    super(code, message, options);
  }
}

/** The caller names something that is not there. HTTP 404. */
export class NotFoundError extends BeeuniError {
  constructor(code: ProblemCodeOf<'not-found'>, message: string, options?: ErrorOptions) {
    super(code, message, options);
  }
}

/** The caller reads again; a superseded daemon stops. HTTP 409, 412. */
export class ConflictError extends BeeuniError {
  constructor(code: ProblemCodeOf<'conflict'>, message: string, options?: ErrorOptions) {
    super(code, message, options);
  }
}

/** Who owns the limit raises it, or the caller waits. HTTP 402, 413, 429. `retryAfterMs`: bounds 0 to 86_400_000. */
export class LimitError extends BeeuniError {
  readonly retryAfterMs: number | undefined;
  constructor(code: ProblemCodeOf<'limit'>, message: string, options: ErrorOptions & { retryAfterMs?: number } = {}) {
    super(code, message, options);
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The caller drops the feature or changes the harness. HTTP 501. */
export class UnsupportedError extends BeeuniError {
  constructor(code: ProblemCodeOf<'unsupported'>, message: string, options?: ErrorOptions) {
    super(code, message, options);
  }
}

/** The caller waits and tries again. HTTP 502, 503, 504. `retryAfterMs`: bounds 0 to 86_400_000. */
export class UnavailableError extends BeeuniError {
  readonly retryAfterMs: number | undefined;
  constructor(
    code: ProblemCodeOf<'unavailable'>,
    message: string,
    options: ErrorOptions & { retryAfterMs?: number | undefined } = {},
  ) {
    super(code, message, options);
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Gives back the error as one of ours: itself, or undefined when it is somebody else's (then it is a bug). */
export const asBeeuniError = (error: unknown): BeeuniError | undefined =>
  error instanceof BeeuniError ? error : undefined;

/** One line for a log: message and the chain of causes, without stacks. Never for a caller. */
export const errorChain = (error: unknown): string => {
  const parts: string[] = [];
  let at: unknown = error;
  for (let depth = 0; at !== undefined && at !== null && depth < 8; depth += 1) {
    parts.push(
      at instanceof Error ? `${at.name}: ${at.message}` : typeof at === 'string' ? at : `a thrown ${typeof at}`,
    );
    at = at instanceof Error ? at.cause : undefined;
  }
  return parts.join(' <- ');
};
