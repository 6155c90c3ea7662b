// The If-Match header of a change: which revision the caller has read. Must not know what has a revision.
import { ConflictError, InvalidError } from '#base/errors.ts';

/** What the caller expects: any state, none at all, or one of these revisions. */
export type Expected = Readonly<
  { kind: 'any' } | { kind: 'none' } | { kind: 'revisions'; revisions: readonly number[] }
>;

/** For a caller that has read nothing. */
export const ANY_STATE: Expected = { kind: 'any' };

/** Proxies make a validator weak when they pack the answer; ours is a revision, which counts as well as it did. */
const MEMBER = /^(?:W\/)?"(\d{1,15})"$/;

/**
 * Reads the header; absent or `*` is any state. A validator that this API never gives matches nothing.
 * Errors: InvalidError `invalid_request` for what is no list of validators.
 */
export const parseIfMatch = (header: string | undefined): Expected => {
  if (header === undefined || header.trim() === '*') return ANY_STATE;
  const members = header.split(',').map((member) => member.trim());
  if (!members.every((member) => /^(W\/)?"[\x21\x23-\x7e]*"$/.test(member))) {
    throw new InvalidError('invalid_request', 'if-match must be an ETag in quotes, as the last answer gave it');
  }
  return {
    kind: 'revisions',
    revisions: members.flatMap((member) => {
      const number = MEMBER.exec(member)?.[1];
      return number === undefined ? [] : [Number(number)];
    }),
  };
};

/**
 * Reads both headers of a change that may create: `if-none-match: *` is for what must not be there yet. Errors:
 * InvalidError `invalid_request` also for another value of it.
 */
export const parseConditions = (ifMatch: string | undefined, ifNoneMatch: string | undefined): Expected => {
  if (ifNoneMatch === undefined) return parseIfMatch(ifMatch);
  if (ifNoneMatch.trim() !== '*' || ifMatch !== undefined) {
    throw new InvalidError('invalid_request', 'if-none-match must be *, which only creates, and without if-match');
  }
  return { kind: 'none' };
};

/** Whether a revision is what the caller expects. */
export const isExpected = (expected: Expected, revision: number): boolean =>
  expected.kind === 'any' || (expected.kind === 'revisions' && expected.revisions.includes(revision));

/** The refusal of a change of an older state; `current` is the state that counts, null when it is gone. */
export const staleError = (what: string, current: unknown): ConflictError =>
  new ConflictError('precondition_failed', `${what} was changed since it was read; read it again`, {
    details: { current },
  });
