// Asks for a session until there is one. What is final ends the daemon, everything else is asked again.
// Must not know HTTP. Source: D6, D7, 10-kubernetes §8.
import { type BackoffBounds, backoffMs } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { asBeeuniError, ConflictError, UnsupportedError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { ClaimAnswer, ClaimRequest } from '#schema/wire/claim.ts';
import type { Claimed } from './control-plane.ts';
import type { EndCause } from './process/termination.ts';

/** Ports of the claim. */
export type ClaimPorts = Readonly<{
  claim: (request: ClaimRequest, signal: AbortSignal) => Promise<Claimed>;
  clock: Clock;
  random: () => number;
  log: Logger;
}>;

const ERROR_BACKOFF: BackoffBounds = { baseMs: 500, maxMs: 10_000 };
/** A server that answers "wait" at once is not asked more often than this. Units: milliseconds. */
const WAIT_BACKOFF: BackoffBounds = { baseMs: 250, maxMs: 2_000 };

/** Why the daemon ends after a claim that was refused for good: the first word of its last line. */
export const endOfRefusedClaim = (error: unknown): EndCause => {
  const { code } = asBeeuniError(error) ?? {};
  if (code === 'harness_mismatch' || code === 'branch_not_found') return code;
  if (error instanceof ConflictError) return 'superseded';
  return error instanceof UnsupportedError ? 'harness_not_available' : 'fault';
};

/** No repetition mends it in the life of a pod; the Session shows its words and starts again later. */
const isFinal = (error: unknown): boolean =>
  error instanceof ConflictError ||
  error instanceof UnsupportedError ||
  asBeeuniError(error)?.code === 'branch_not_found';

/**
 * The session of this pod. Rejects with ConflictError (`superseded`, `harness_mismatch`), UnsupportedError
 * (`harness_not_available`) and NotFoundError (`branch_not_found`), and with the signal's reason.
 */
export const claimSession = async (
  ports: ClaimPorts,
  request: ClaimRequest,
  signal: AbortSignal,
): Promise<ClaimAnswer> => {
  let failures = 0;
  let waits = 0;
  for (;;) {
    signal.throwIfAborted();
    try {
      const answer = await ports.claim(request, signal);
      if (answer.state === 'claimed') return answer.claim;
      failures = 0;
      waits += 1;
      if (waits === 1) ports.log.info('waiting for a session', { reason: answer.reason });
      await sleep(ports.clock, backoffMs(WAIT_BACKOFF, waits, ports.random), signal);
    } catch (error) {
      if (signal.aborted || isFinal(error)) throw error;
      failures += 1;
      ports.log.warn('the claim failed; it is tried again', { code: asBeeuniError(error)?.code, err: error });
      await sleep(ports.clock, backoffMs(ERROR_BACKOFF, failures, ports.random), signal);
    }
  }
};
