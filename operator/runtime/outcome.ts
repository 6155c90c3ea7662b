// What an error of a pass means for its key: wait for a change, try again, and how loudly it is told.
// The one mapping of our error classes in the operator; exhaustive. Source: house rule on errors, K36, K39.
import { type BeeuniError as AnyBeeuniError, BeeuniError, LimitError, UnavailableError } from '#base/errors.ts';
import type { ProblemCode, ProblemGroup } from '#schema/problem.ts';

/** How a failed pass goes on. `stalled`: shown in a condition. */
export type Outcome = Readonly<{
  code: ProblemCode;
  retry: 'backoff' | 'at-once' | 'slowly' | 'on-change';
  afterMs: number | undefined;
  stalled: boolean;
  level: 'debug' | 'warn' | 'error';
}>;

const RULES: Readonly<Record<ProblemGroup, Omit<Outcome, 'code' | 'afterMs'>>> = {
  invalid: { retry: 'on-change', stalled: true, level: 'warn' },
  unauthenticated: { retry: 'slowly', stalled: true, level: 'warn' },
  forbidden: { retry: 'slowly', stalled: true, level: 'warn' },
  'not-found': { retry: 'backoff', stalled: false, level: 'warn' },
  conflict: { retry: 'at-once', stalled: false, level: 'debug' },
  limit: { retry: 'backoff', stalled: false, level: 'warn' },
  unsupported: { retry: 'on-change', stalled: true, level: 'warn' },
  unavailable: { retry: 'backoff', stalled: false, level: 'warn' },
  bug: { retry: 'backoff', stalled: true, level: 'error' },
};

/** The error as one of ours; undefined: it is a bug. */
export const knownError = (error: unknown): AnyBeeuniError | undefined =>
  error instanceof BeeuniError ? error : undefined;

/** What the error means. An error that is none of ours is a bug, and is told with its stack. */
export const outcomeOf = (error: unknown): Outcome => {
  const known = knownError(error);
  const rule = RULES[known?.group ?? 'bug'];
  const afterMs = known instanceof UnavailableError || known instanceof LimitError ? known.retryAfterMs : undefined;
  return { ...rule, code: known?.code ?? 'internal', afterMs };
};
