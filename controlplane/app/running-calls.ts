// The model calls and git requests of sandboxes that run now, and their end when what lets them run is taken away: the claim
// moved on, the session was closed, its credential was revoked, its provider or its key is gone. Must not know SQL or how a call
// is made.
// Source: FC12, G31, D7, faults §2 (a revocation takes effect within 5 s).
import { ConflictError, UnauthenticatedError, UnavailableError } from '#base/errors.ts';
import { type Entry, Roster } from '#base/roster.ts';
import type { SandboxIdentity } from './ports.ts';
import type { ReadProviderKeys, ReadRegistry } from './provider-ports.ts';

/** Why a call may not go on. */
export type Revocation = 'superseded' | 'unauthenticated' | Withdrawal;

/** Why a call may not go on with its provider. */
export type Withdrawal = 'provider_disabled' | 'provider_key_gone';

/** The provider that answers a call, and the key that it was sent. */
export type ProviderUse = Readonly<{ providerId: string; key: string | undefined }>;

/** What of a use was withdrawn; undefined for nothing. Errors: UnavailableError when it cannot be known now. */
export type FindWithdrawn = (use: ProviderUse) => Promise<Withdrawal | undefined>;

/** What a call runs by. */
export type CallHolder = Pick<SandboxIdentity, 'sessionUid' | 'generation'>;

/** One call that runs. `use`: of a model call, while a provider is asked. `revoke` ends it at once; it may be called again. */
export type RunningCall = Entry &
  Readonly<{ identity: CallHolder; use?: ProviderUse | undefined; revoke: (why: Revocation) => void }>;

/** The calls that run. */
export type RunningCalls = Readonly<{
  begin: (call: RunningCall) => void;
  end: (call: RunningCall) => void;
  /** Ends what may not go on. Errors: UnavailableError; what could not be asked then goes on. */
  look: () => Promise<void>;
}>;

/** Those of the holders whose calls may not go on, and why. Errors: UnavailableError `database_unavailable`. */
export type FindRevoked = (
  holders: readonly CallHolder[],
) => Promise<readonly Readonly<CallHolder & { why: Revocation }>[]>;

const keyOf = ({ sessionUid, generation }: CallHolder): string => `${generation} ${sessionUid}`;

/** Asks the registry and the pools of keys as a new call would; a pool that is gone or wrong holds no key. */
export const makeFindWithdrawn =
  (ports: Readonly<{ readRegistry: ReadRegistry; readKeys: ReadProviderKeys }>): FindWithdrawn =>
  async ({ providerId, key }) => {
    const { providers } = await ports.readRegistry();
    const provider = providers.find(({ id }) => id === providerId);
    if (provider?.enabled !== true) return 'provider_disabled';
    if (key === undefined) return undefined;
    try {
      return (await ports.readKeys(provider)).some(({ secret }) => secret === key) ? undefined : 'provider_key_gone';
    } catch (error) {
      if (error instanceof UnavailableError && error.code === 'provider_key_unavailable') return 'provider_key_gone';
      throw error;
    }
  };

/** Keeps the calls of one replica. */
export const makeRunningCalls = (findRevoked: FindRevoked, findWithdrawn: FindWithdrawn): RunningCalls => {
  const running = new Roster<RunningCall>();
  const lookAtProviders = async (): Promise<void> => {
    // Of a provider and a key is asked once, however many calls they answer.
    const answers = new Map<string, Withdrawal | undefined>();
    for (const call of running.all()) {
      const { use } = call;
      if (use === undefined) continue;
      const key = `${use.providerId} ${use.key ?? ''}`;
      if (!answers.has(key)) answers.set(key, await findWithdrawn(use));
      const why = answers.get(key);
      // It may ask another provider by now.
      if (why !== undefined && call.use === use) call.revoke(why);
    }
  };
  const lookAtCredentials = async (): Promise<void> => {
    const holders = new Map(running.all().map(({ identity }) => [keyOf(identity), identity]));
    const revoked = new Map((await findRevoked([...holders.values()])).map((each) => [keyOf(each), each.why]));
    if (revoked.size === 0) return;
    for (const call of running.all()) {
      const why = revoked.get(keyOf(call.identity));
      if (why !== undefined) call.revoke(why);
    }
  };
  return {
    begin: (call) => running.add(call),
    end: (call) => running.remove(call),
    look: async () => {
      if (running.size === 0) return;
      // Neither waits for what the other needs.
      const looks = await Promise.allSettled([lookAtCredentials(), lookAtProviders()]);
      for (const one of looks) if (one.status === 'rejected') throw one.reason;
    },
  };
};

const revokedError = (why: Revocation): Error =>
  why === 'superseded'
    ? new ConflictError('superseded', 'a newer claim of this session exists')
    : new UnauthenticatedError('the session credential is no longer valid');

/**
 * Gives back what does work as a running call; what it is given fires when the call is revoked, or `signal` does. The work is
 * not waited for then.
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
