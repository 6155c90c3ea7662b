// The ends of attempts and sessions, as the operator asks for them and as the cache shows them: fence and drain, pod
// gone, close, and the removal of everything once the object is gone. Must not know SQL, HTTP or Kubernetes clients.
// Source: 10-kubernetes §4 (suspend, Delete), §6.
import type { Clock } from '#base/clock.ts';
import { ConflictError } from '#base/errors.ts';
import type { Fencing } from './session-records.ts';

/** What ends need. */
export type LifecyclePorts = Readonly<{
  fence: (uid: string, podUid: string, turn: 'none' | 'wait' | 'abort') => Promise<Fencing>;
  podGone: (uid: string, podUid: string, at: string) => Promise<void>;
  close: (uid: string, at: string) => Promise<void>;
  /** Closes, then removes every row. */
  remove: (uid: string, at: string) => Promise<void>;
  /** Uids of stored sessions after one, in order. */
  listStored: (afterUid: string, limit: number) => Promise<readonly string[]>;
  /** Whether the cache has the Session. Only asked once the cache is complete. */
  exists: (uid: string) => boolean;
  /** Tells the daemon to drain; undefined when it could not be reached. */
  drain: (uid: string, turn: 'wait' | 'abort', deadlineMs: number) => Promise<Readonly<{ idle: boolean }> | undefined>;
  /** Told when answers about the session's credentials must not be remembered. */
  onRevoked: (uid: string) => void;
  clock: Clock;
}>;

/** A stop as the operator asks for it. */
export type Stop = Readonly<{
  uid: string;
  podUid: string;
  turn: 'none' | 'wait' | 'abort';
  deadlineSeconds: number;
}>;

/** The functions; each may be repeated. */
export type Lifecycle = Readonly<{
  /** Errors: ConflictError `not_idle` for turn `none` while something runs or waits. */
  stop: (stop: Stop) => Promise<'stopped' | 'draining'>;
  podGone: (uid: string, podUid: string) => Promise<void>;
  close: (uid: string) => Promise<void>;
  /** To be called when the cache says that a Session is gone. */
  objectGone: (uid: string) => Promise<void>;
  /** Removes what is stored of Sessions that are gone; gives back how many. */
  sweep: () => Promise<number>;
}>;

const PAGE = 500;

/** Makes the functions. */
export const makeLifecycle = (ports: LifecyclePorts): Lifecycle => {
  const now = (): string => new Date(ports.clock.nowMs()).toISOString();
  const objectGone = async (uid: string): Promise<void> => {
    await ports.remove(uid, now());
    ports.onRevoked(uid);
  };
  return {
    stop: async ({ uid, podUid, turn, deadlineSeconds }) => {
      const fencing = await ports.fence(uid, podUid, turn);
      if (fencing.state === 'working')
        throw new ConflictError('not_idle', 'the session works or has prompts that wait');
      if (turn === 'none') return 'stopped';
      const answer = await ports.drain(uid, turn, deadlineSeconds * 1_000);
      // What the daemon says about itself is not enough: the terminal event must have arrived.
      return fencing.openTurnId === undefined && answer?.idle !== false ? 'stopped' : 'draining';
    },
    podGone: async (uid, podUid) => {
      await ports.podGone(uid, podUid, now());
      ports.onRevoked(uid);
    },
    close: async (uid) => {
      await ports.close(uid, now());
      ports.onRevoked(uid);
    },
    objectGone,
    sweep: async () => {
      let removed = 0;
      let after = '';
      for (;;) {
        const uids = await ports.listStored(after, PAGE);
        for (const uid of uids.filter((stored) => !ports.exists(stored))) {
          await objectGone(uid);
          removed += 1;
        }
        const last = uids.at(-1);
        if (uids.length < PAGE || last === undefined) return removed;
        after = last;
      }
    },
  };
};
