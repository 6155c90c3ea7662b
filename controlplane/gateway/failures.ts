// What a client is told when a call fails on our side of the provider: errors of ours, silence, budgets. Pure.
// Must not know how a call is made. Source: 20-control-plane §5.
import { BeeuniError, ForbiddenError, LimitError, UnavailableError } from '#base/errors.ts';
import type { Revocation } from '../app/running-calls.ts';
import { type AttemptEnd, invalidAnswer } from './attempt.ts';
import type { BudgetRefusal } from './budgets.ts';
import { finalError, type GatewayError, retryableError } from './wording.ts';

/** An error of ours in the words of the gateway. */
export const wordOf = (error: unknown): GatewayError => {
  if (error instanceof ForbiddenError && error.code === 'address_not_allowed') return finalError('address_not_allowed');
  if (error instanceof LimitError)
    return retryableError(429, error.code, error.message, (error.retryAfterMs ?? 1_000) / 1000);
  if (error instanceof UnavailableError) {
    return retryableError(503, error.code, `${error.message}; try again later`, (error.retryAfterMs ?? 2_000) / 1000);
  }
  const code = error instanceof BeeuniError ? error.code : 'internal';
  return retryableError(502, code, 'the gateway could not make this call; try again later', 2);
};

const rootOf = (error: unknown): unknown => {
  let at = error;
  for (let depth = 0; at instanceof Error && at.cause instanceof Error && depth < 8; depth += 1) at = at.cause;
  return at;
};

/** What to say of an attempt that sent nothing. */
export const silentError = (end: Extract<AttemptEnd, { kind: 'silent' }>): GatewayError => {
  const root = rootOf(end.error);
  if (root instanceof BeeuniError) return wordOf(root);
  if (end.why === 'total') {
    return retryableError(504, 'provider_timed_out', 'the time limit of the call is over; try again later', 1);
  }
  if (end.why !== undefined) {
    return retryableError(504, 'provider_timed_out', 'the provider did not answer in time; try again later', 1);
  }
  if (root === invalidAnswer) {
    return retryableError(502, 'provider_failed', `${invalidAnswer.message}; try again later`, 1);
  }
  return retryableError(502, 'provider_failed', 'the connection to the provider broke; try again later', 1);
};

/** What to say of a call that a budget refuses. */
export const refusedBudget = ({ reason, scope }: BudgetRefusal): GatewayError => {
  if (reason === 'held') {
    return retryableError(
      429,
      'budget_held',
      'the rest of the budget is set aside for calls under way; try again later',
      1,
    );
  }
  const words = {
    session: 'the budget of this session is used up; raise spec.limits.budgetMicroUSD of the Session',
    project_day: 'the daily budget of the project is used up; raise spec.limits.dailyBudgetMicroUSD of the Project',
    project_month:
      'the monthly budget of the project is used up; raise spec.limits.monthlyBudgetMicroUSD of the Project',
    project_runs: 'the project began as many turns today as it may; raise spec.limits.dailyRuns of the Project',
  } as const;
  return finalError('budget_reached', words[scope]);
};

/** What to say of a call that ran and may not go on. */
export const revokedError = (why: Revocation): GatewayError => {
  if (why === 'provider_disabled') {
    return finalError(why, 'the provider of this model was disabled or deleted while it was asked');
  }
  if (why === 'provider_key_gone') {
    return finalError(
      'provider_auth_failed',
      'the key that this call was made with was taken away; the next call takes one that is left',
    );
  }
  return finalError(why);
};
