// Remembers answers of the API server for a few seconds, asks once for all who wait for the same answer, and bounds how
// many questions are open. Must not know what is asked. Source: 20-control-plane §1.
import { createHash } from 'node:crypto';
import type { Clock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';

/**
 * How long a good answer counts, from the moment of the question: with the time of the call that it lets in, no permission
 * outlives its end by 5 s. Units: milliseconds. Source: 20-control-plane §1.
 */
export const POSITIVE_TTL_MS = 4_500;
/** How long a refusal counts: short, so that a new permission is seen at once, long enough to stop a storm. */
export const NEGATIVE_TTL_MS = 1_000;
/** Answers that are kept, and questions that may be open at once. */
const MAX_ANSWERS = 10_000;
const MAX_OPEN = 64;

/**
 * Asks, or remembers; `maxAgeMs` bounds the age of what is remembered. `key` may be secret: only its hash is kept. Errors:
 * those of `ask`; UnavailableError when too many are open.
 */
export type ReviewCache<A> = Readonly<{
  answer: (key: string, ask: () => Promise<A>, maxAgeMs?: number) => Promise<A>;
}>;

/** A cache of answers; `isPositive` says which of the two times counts. */
export const makeReviewCache = <A>(
  clock: Pick<Clock, 'monotonicMs'>,
  isPositive: (answer: A) => boolean,
): ReviewCache<A> => {
  const answers = new Map<string, Readonly<{ answer: A; askedMs: number; untilMs: number }>>();
  const open = new Map<string, Promise<A>>();

  const keep = (id: string, askedMs: number, answer: A): void => {
    answers.delete(id);
    answers.set(id, { answer, askedMs, untilMs: askedMs + (isPositive(answer) ? POSITIVE_TTL_MS : NEGATIVE_TTL_MS) });
    const [oldest] = answers.keys();
    if (answers.size > MAX_ANSWERS && oldest !== undefined) answers.delete(oldest);
  };

  return {
    answer: (key, ask, maxAgeMs = Number.POSITIVE_INFINITY) => {
      const id = createHash('sha256').update(key).digest('base64');
      const known = answers.get(id);
      const nowMs = clock.monotonicMs();
      if (known !== undefined && nowMs < Math.min(known.untilMs, known.askedMs + maxAgeMs))
        return Promise.resolve(known.answer);
      const waiting = open.get(id);
      if (waiting !== undefined) return waiting;
      if (open.size >= MAX_OPEN) {
        return Promise.reject(
          new UnavailableError('authorizer_unavailable', 'too many callers are being looked up; try again', {
            retryAfterMs: 1_000,
          }),
        );
      }
      const askedMs = clock.monotonicMs();
      const asked = ask()
        .then((answer) => {
          keep(id, askedMs, answer);
          return answer;
        })
        .finally(() => open.delete(id));
      open.set(id, asked);
      return asked;
    },
  };
};
