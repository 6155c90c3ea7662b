// The model calls and git requests of sandboxes that run now, and their end when what lets them run is taken away: the claim
// moved on, the session was closed, its credential was revoked. One question for all of them at each look. Must not know SQL or
// how a call is made.
// Source: FC12, D7, faults §2 (a revocation takes effect within 5 s).
import { ConflictError, UnauthenticatedError } from '#base/errors.ts';
import { type Entry, Roster } from '#base/roster.ts';
import type { SandboxIdentity } from './ports.ts';

/** Why a call may not go on. */
export type Revocation = 'superseded' | 'unauthenticated';

/** What a call runs by. */
export type CallHolder = Pick<SandboxIdentity, 'sessionUid' | 'generation'>;

/** One call that runs. `revoke` ends it at once; it may be called again. */
export type RunningCall = Entry & Readonly<{ identity: CallHolder; revoke: (why: Revocation) => void }>;

/** The calls that run. */
export type RunningCalls = Readonly<{
  begin: (call: RunningCall) => void;
  end: (call: RunningCall) => void;
  /** Ends what may not go on. Errors: UnavailableError `database_unavailable`; then nothing is ended. */
  look: () => Promise<void>;
}>;

/** Those of the holders whose calls may not go on, and why. Errors: UnavailableError `database_unavailable`. */
export type FindRevoked = (
  holders: readonly CallHolder[],
) => Promise<readonly Readonly<CallHolder & { why: Revocation }>[]>;

const keyOf = ({ sessionUid, generation }: CallHolder): string => `${generation} ${sessionUid}`;

/** Keeps the calls of one replica. */
export const makeRunningCalls = (findRevoked: FindRevoked): RunningCalls => {
  const running = new Roster<RunningCall>();
  return {
    begin: (call) => running.add(call),
    end: (call) => running.remove(call),
    look: async () => {
      if (running.size === 0) return;
      const holders = new Map(running.all().map(({ identity }) => [keyOf(identity), identity]));
      const revoked = new Map((await findRevoked([...holders.values()])).map((each) => [keyOf(each), each.why]));
      if (revoked.size === 0) return;
      for (const call of running.all()) {
        const why = revoked.get(keyOf(call.identity));
        if (why !== undefined) call.revoke(why);
      }
    },
  };
};

const revokedError = (why: Revocation): Error =>
  why === 'superseded'
    ? new ConflictError('superseded', 'a newer claim of this session exists')
    : new UnauthenticatedError('the session credential is no longer valid');

/**
 * Gives back what does work as a running call; what it is given fires when the call is revoked, or `signal` does. The work is not waited for then.
 * Errors: those of the work; ConflictError `superseded`, UnauthenticatedError.
 */
export const makeRunAsCall =
  (running: Pick<RunningCalls, 'begin' | 'end'>) =>
  async (identity: CallHolder, signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    const over = new AbortController();
    const revoked = Promise.withResolvers<never>();
    // Nobody waits for it once the work has ended.
    revoked.promise.catch(() => undefined);
    const call: RunningCall = {
      place: 0,
      identity,
      revoke: (why) => {
        revoked.reject(revokedError(why));
        over.abort();
      },
    };
    running.begin(call);
    try {
      await Promise.race([revoked.promise, work(AbortSignal.any([signal, over.signal]))]);
    } finally {
      running.end(call);
    }
  };
