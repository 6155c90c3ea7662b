// Health reports: a change that matters becomes a row and a fact at once, all others only say "still there", and those
// are written together every few seconds. Silence is found by one query over an index, never by asking each session.
// Must not know SQL or HTTP. Source: D16, K14, 10-kubernetes §6.
import { createHash } from 'node:crypto';
import type { Clock } from '#base/clock.ts';
import { HEALTH_SILENT_AFTER_MS, type HealthDocument } from '#schema/wire/health.ts';
import type { DeliveredAnswer } from '#schema/wire/requests.ts';
import type { SandboxClaim } from './session-records.ts';

/** What health needs. All store functions raise the facts of what they change. */
export type HealthPorts = Readonly<{
  /** Stores a report and raises the session's fact. */
  save: (sessionUid: string, generation: number, document: HealthDocument, digest: string) => Promise<void>;
  /** Notes that these daemons answered just now. */
  touch: (sessionUids: readonly string[]) => Promise<void>;
  /** Marks daemons silent whose last answer is older; gives back how many. */
  markSilent: (afterSeconds: number) => Promise<number>;
  read: (
    sessionUid: string,
  ) => Promise<Readonly<{ document: HealthDocument; reported_at: string; state: string }> | undefined>;
  /** What waits for the daemon, and the digest of the report that is stored of this claim. */
  errands: (
    sessionUid: string,
    podUid: string,
  ) => Promise<
    | Readonly<{
        prompts_waiting: boolean;
        abort_turn_id: string | null;
        digest: string | null;
        answers: readonly DeliveredAnswer[];
      }>
    | undefined
  >;
  clock: Clock;
  /** Told of a round that failed; the next one tries again. */
  onError: (error: unknown) => void;
}>;

/** What a daemon is told in the answer to its report. */
export type Errands = Readonly<{
  promptsWaiting: boolean;
  abortTurnId: string | null;
  /** Answers of people that the daemon has not confirmed. */
  answers: DeliveredAnswer[];
}>;

/** Functions on health. `start` begins the rounds, `stop` ends them. */
export type Health = Readonly<{
  report: (claim: SandboxClaim, document: HealthDocument) => Promise<Errands>;
  /** The newest report, undefined before the first. */
  read: (
    sessionUid: string,
  ) => Promise<Readonly<{ health: HealthDocument; reportedAt: string; silent: boolean }> | undefined>;
  start: () => void;
  stop: () => void;
}>;

/** Time between two rounds. Units: milliseconds. */
const ROUND_MS = 3_000;
/** What has to differ for a report to matter: all but clocks and counters. As SHA-256 in base64url. */
export const digestOf = (document: HealthDocument): string => {
  const { uptime_s: _uptime, boot_timeline: _timeline, activity, ...rest } = document;
  const harness = { ...rest.harness, details: null };
  const text = JSON.stringify({ ...rest, harness, state: activity.state, turn: activity.turnId });
  return createHash('sha256').update(text).digest('base64url');
};

/** Makes the functions. */
export const makeHealth = (ports: HealthPorts): Health => {
  const { clock } = ports;
  const answered = new Set<string>();
  /** Since when rounds succeed without a gap: after an outage everybody looks silent, and nobody is. */
  let soundSinceMs: number | undefined;
  let cancelTimer = () => {};
  let isRunning = false;

  const round = async (): Promise<void> => {
    const startedMs = clock.monotonicMs();
    const uids = [...answered];
    answered.clear();
    try {
      // Also with nobody to note: a round that did not ask the database says nothing about it.
      await ports.touch(uids.sort());
      soundSinceMs ??= startedMs;
      if (clock.monotonicMs() - soundSinceMs > HEALTH_SILENT_AFTER_MS) {
        await ports.markSilent(HEALTH_SILENT_AFTER_MS / 1_000);
      }
    } catch (error) {
      soundSinceMs = undefined;
      for (const uid of uids) answered.add(uid);
      ports.onError(error);
    }
  };

  const schedule = (): void => {
    cancelTimer = clock.startTimer(ROUND_MS, () => void round().finally(() => isRunning && schedule()));
  };

  return {
    report: async ({ sessionUid, generation, podUid }, document) => {
      const errands = await ports.errands(sessionUid, podUid);
      const digest = digestOf(document);
      // Compared with the row, as the last report may have come to another replica.
      if (errands?.digest === digest) answered.add(sessionUid);
      else await ports.save(sessionUid, generation, document, digest);
      return {
        promptsWaiting: errands?.prompts_waiting ?? false,
        abortTurnId: errands?.abort_turn_id ?? null,
        answers: [...(errands?.answers ?? [])],
      };
    },
    read: async (sessionUid) => {
      const row = await ports.read(sessionUid);
      if (row === undefined) return undefined;
      return { health: row.document, reportedAt: row.reported_at, silent: row.state === 'Silent' };
    },
    start: () => {
      isRunning = true;
      schedule();
    },
    stop: () => {
      isRunning = false;
      cancelTimer();
    },
  };
};
