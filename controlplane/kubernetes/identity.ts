// Who a bearer token belongs to and what its owner may do, as the API server answers, remembered for at most 5 s.
// The API server itself remembers a token for 10 s, by its text and the audiences that are asked for: every question of ours
// names an audience that nobody has, so it is looked at anew (docs/decisions/0053). An API server that cannot be asked is
// never taken for a refusal. Must not know routes. Source: D5, D6, 20-control-plane §1.
import { randomUUID } from 'node:crypto';
import type { Clock } from '#base/clock.ts';
import { BeeuniError, UnavailableError } from '#base/errors.ts';
import type { KubeClient } from '#kube/client.ts';
import {
  type AccessQuestion,
  type Identity,
  type Subject,
  subjectAccessReview,
  type TokenAnswer,
  tokenReview,
} from '#kube/reviews.ts';
import { makeReviewCache } from './review-cache.ts';

/** What identity needs. `audience` is that of the tokens of pods and of the operator. */
export type IdentityPorts = Readonly<{ client: KubeClient; clock: Clock; audience: string }>;

/** Whose tokens are taken: those made for us only, or also those made for the API server, as people have them. */
export type AcceptedTokens = 'ours' | 'ours-or-api-server';

/**
 * The two questions; `maxAgeMs` bounds the age of an answer below the time for which it is remembered. Errors of both:
 * UnavailableError `authorizer_unavailable`.
 */
export type Identities = Readonly<{
  /** The owner of a token; undefined when nobody is. */
  identify: (token: string, accepted: AcceptedTokens, maxAgeMs?: number) => Promise<Identity | undefined>;
  /** Whether the subject may. */
  mayAccess: (subject: Subject, question: AccessQuestion, maxAgeMs?: number) => Promise<boolean>;
}>;

const REVIEW_TIMEOUT_MS = 5_000;

/** The failure to ask, whatever its reason: also our own missing permission is not the caller's fault. */
const unavailable = (error: unknown): never => {
  if (error instanceof UnavailableError && error.code === 'authorizer_unavailable') throw error;
  if (!(error instanceof BeeuniError)) throw error;
  throw new UnavailableError('authorizer_unavailable', 'the Kubernetes API server could not be asked who may do this', {
    cause: error,
    retryAfterMs: (error instanceof UnavailableError ? error.retryAfterMs : undefined) ?? 1_000,
  });
};

/** Identity over one client; each replica has its own memory. */
export const makeIdentities = (ports: IdentityPorts): Identities => {
  const { client, clock, audience } = ports;
  const tokens = makeReviewCache<TokenAnswer>(clock, (answer) => answer.kind === 'authenticated');
  const access = makeReviewCache<boolean>(clock, (allowed) => allowed);
  const options = { timeoutMs: REVIEW_TIMEOUT_MS };
  /** What the API server calls itself, as far as tokens have shown it. */
  const apiServerAudiences = new Set<string>();

  const reviewAnew = (token: string, others: Iterable<string>): Promise<TokenAnswer> =>
    tokenReview(client, token, [...new Set([audience, ...others]), `anew-${randomUUID()}`], options);

  const reviewAny = async (token: string): Promise<TokenAnswer> => {
    const known = await reviewAnew(token, apiServerAudiences);
    if (known.kind === 'authenticated') return known;
    const remembered = await tokenReview(client, token, [], options);
    if (remembered.kind !== 'authenticated' || remembered.audiences.length === 0) return remembered;
    const isKnown = remembered.audiences.some((each) => apiServerAudiences.has(each));
    for (const each of remembered.audiences) apiServerAudiences.add(each);
    // A token that was refused for an audience that it has is one that is gone.
    return isKnown ? known : reviewAnew(token, apiServerAudiences);
  };

  return {
    identify: async (token, accepted, maxAgeMs) => {
      const review = (): Promise<TokenAnswer> => (accepted === 'ours' ? reviewAnew(token, []) : reviewAny(token));
      const answer = await tokens.answer(`${accepted} ${token}`, review, maxAgeMs).catch(unavailable);
      return answer.kind === 'authenticated' ? answer.identity : undefined;
    },
    mayAccess: (subject, question, maxAgeMs) => {
      const review = async (): Promise<boolean> =>
        (await subjectAccessReview(client, subject, question, options)).allowed;
      return access.answer(JSON.stringify([subject, question]), review, maxAgeMs).catch(unavailable);
    },
  };
};
