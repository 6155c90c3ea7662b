// Brings what the cache of Sessions shows into the database: new ones with the prompt of their spec, and the end of those
// that are gone. Batched, repeated until it worked, harmless when every replica does it. Must not know SQL or Kubernetes.
// Source: 20-control-plane §9.
import type { CancelTimer, Clock } from '#base/clock.ts';
import type { Session } from '#schema/resources/session.ts';

/** What is needed. */
export type SeenSessionsPorts = Readonly<{
  findSessionByUid: (uid: string) => Session | undefined;
  listSessions: () => readonly Session[];
  /** Idempotent. Errors: UnavailableError. */
  admitSeen: (sessions: readonly Session[]) => Promise<void>;
  /** Idempotent. Errors: UnavailableError. */
  objectGone: (uid: string) => Promise<void>;
  /** Removes what is stored of Sessions that went while nobody looked. */
  sweep: () => Promise<unknown>;
  clock: Clock;
  onError: (error: unknown) => void;
}>;

/** The work. `changed` may be called at any time; nothing is done before `start`. */
export type SeenSessions = Readonly<{
  changed: (uid: string) => void;
  /** To be called once the cache is complete. */
  start: () => void;
  stop: () => Promise<void>;
}>;

/** Changes that come together share a transaction. Units: milliseconds, sessions. */
const PAUSE_MS = 20;
const RETRY_MS = 2_000;
const BATCH = 200;
const SWEEP_INTERVAL_MS = 600_000;

/** Makes the work. */
export const makeSeenSessions = (ports: SeenSessionsPorts): SeenSessions => {
  const { clock } = ports;
  const waiting = new Set<string>();
  /** Uids whose row was made: a Session changes often, its row is needed once. */
  const admitted = new Set<string>();
  let isStarted = false;
  let nextSweepMs = 0;
  let cancelTimer: CancelTimer | undefined;
  let running: Promise<void> | undefined;

  const handle = async (uids: readonly string[]): Promise<void> => {
    const fresh = uids.flatMap((uid) => (admitted.has(uid) ? [] : (ports.findSessionByUid(uid) ?? [])));
    if (fresh.length > 0) await ports.admitSeen(fresh);
    for (const session of fresh) admitted.add(session.metadata.uid);
    for (const uid of uids) {
      if (ports.findSessionByUid(uid) !== undefined) continue;
      await ports.objectGone(uid);
      admitted.delete(uid);
    }
  };

  const handleBatch = async (): Promise<void> => {
    const uids = [...waiting].slice(0, BATCH);
    // Taken out first: a change that comes meanwhile waits for the next batch.
    for (const uid of uids) waiting.delete(uid);
    try {
      await handle(uids);
    } catch (error) {
      for (const uid of uids) waiting.add(uid);
      throw error;
    }
  };

  /** Gives back how long to wait before looking again. Units: milliseconds. */
  const round = async (): Promise<number> => {
    try {
      while (isStarted && waiting.size > 0) await handleBatch();
      if (isStarted && clock.monotonicMs() >= nextSweepMs) {
        await ports.sweep();
        nextSweepMs = clock.monotonicMs() + SWEEP_INTERVAL_MS;
      }
      return waiting.size > 0 ? PAUSE_MS : Math.max(PAUSE_MS, nextSweepMs - clock.monotonicMs());
    } catch (error) {
      ports.onError(error);
      return RETRY_MS;
    }
  };

  const plan = (delayMs: number): void => {
    if (!isStarted || running !== undefined) return;
    cancelTimer?.();
    cancelTimer = clock.startTimer(delayMs, () => {
      running = round().then((nextMs) => {
        running = undefined;
        plan(nextMs);
      });
    });
  };

  return {
    changed: (uid) => {
      waiting.add(uid);
      if (waiting.size === 1) plan(PAUSE_MS);
    },
    start: () => {
      isStarted = true;
      for (const session of ports.listSessions()) waiting.add(session.metadata.uid);
      plan(0);
    },
    stop: async () => {
      isStarted = false;
      cancelTimer?.();
      await running;
    },
  };
};
