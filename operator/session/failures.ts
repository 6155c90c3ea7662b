// Counting failures and the pauses between tries. Pure. Must not know pods. Source: 10-kubernetes §4, failures.
import { FAILURES, type SessionStatus } from '#schema/resources/session.ts';
import { timeMs, timestamp } from '../runtime/time.ts';
import type { FailureSign } from './pod-signs.ts';

/** `status.failure`. */
export type Failure = NonNullable<SessionStatus['failure']>;

/** Failures after which an Interactive Session is blocked and a Task is over. */
export const MAX_FAILURES = 5;
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** Pause after the first, second and every further failure. Units: milliseconds. */
const COOL_DOWN_MS = [2 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS] as const;
/** Pause after the last failure. Units: milliseconds. */
const BLOCK_MS = 30 * MINUTE_MS;
/** Pauses between starts after disruptions in a row. Units: milliseconds. */
const DISRUPTION_MS = [0, 10 * SECOND_MS, 30 * SECOND_MS, 60 * SECOND_MS] as const;
/** So long Ready, and what was before is forgotten. Units: milliseconds. */
export const FORGET_AFTER_READY_MS = 10 * MINUTE_MS;
const MAX_MESSAGE = 512;

/** True for what was no fault of the Session: it starts again and does not count. */
export const isDisruption = (failure: Pick<Failure, 'category'>): boolean =>
  FAILURES[failure.category].effect === 'StartsAgain';

const disruptionPauseMs = (before: Failure | undefined): number => {
  if (before === undefined || !isDisruption(before)) return DISRUPTION_MS[0];
  const lastMs = (timeMs(before.nextRetryTime) ?? 0) - (timeMs(before.since) ?? 0);
  return DISRUPTION_MS.find((pauseMs) => pauseMs > lastMs) ?? (DISRUPTION_MS[3] as number);
};

/** `status.failure` after one more failure. `now` in milliseconds since 1970. */
export const recordFailure = (before: Failure | undefined, sign: FailureSign, now: number): Failure => {
  const rule = FAILURES[sign.category];
  const soFar = before?.attempts ?? 0;
  const attempts = rule.effect === 'Counts' ? Math.min(soFar + 1, 1_000) : soFar;
  const pauseMs =
    rule.effect === 'StartsAgain'
      ? disruptionPauseMs(before)
      : attempts >= MAX_FAILURES
        ? BLOCK_MS
        : (COOL_DOWN_MS[Math.min(attempts, COOL_DOWN_MS.length) - 1] ?? COOL_DOWN_MS[0]);
  return {
    category: sign.category,
    message: sign.message.slice(0, MAX_MESSAGE),
    retryable: rule.retryable,
    attempts,
    since: timestamp(now),
    ...(rule.effect === 'Terminal' ? {} : { nextRetryTime: timestamp(now + pauseMs) }),
  };
};

/** True when the pause after the failure is not over. */
export const isPausing = (failure: Failure | undefined, now: number): boolean =>
  (timeMs(failure?.nextRetryTime) ?? 0) > now;

/** True when so many tries failed that nothing starts by itself any more. */
export const isBlocked = (failure: Failure | undefined): boolean =>
  failure !== undefined && !isDisruption(failure) && failure.attempts >= MAX_FAILURES;

/** One line about a failure, as Ready says it. */
export const failureSentence = (failure: Failure): string =>
  isDisruption(failure)
    ? `${failure.category}: ${failure.message}`
    : `attempt ${failure.attempts} failed: ${failure.category}: ${failure.message}`;
