// What has to be tidied from time to time: old "gone" facts, logs above their limit.
// Must not know SQL. Every replica may do it at once.
import type { Clock } from '#base/clock.ts';

/** What upkeep needs. */
export type UpkeepPorts = Readonly<{
  /** Forgets "gone" facts of that age. */
  forgetGone: (olderThanSeconds: number) => Promise<unknown>;
  /** Cuts logs to so many events. */
  cutLogs: (keepEvents: number) => Promise<unknown>;
  keepEvents: number;
  clock: Clock;
  onError: (error: unknown) => void;
}>;

/** The rounds. */
export type Upkeep = Readonly<{ start: () => void; stop: () => void }>;

const ROUND_MS = 600_000;
const RETRY_MS = 30_000;
const GONE_SECONDS = 3_600;

/** Makes the rounds; the first begins at `start`. */
export const makeUpkeep = (ports: UpkeepPorts): Upkeep => {
  let cancelTimer = () => {};
  let isRunning = false;
  const round = async (): Promise<void> => {
    let delayMs = ROUND_MS;
    try {
      await ports.forgetGone(GONE_SECONDS);
      await ports.cutLogs(ports.keepEvents);
    } catch (error) {
      delayMs = RETRY_MS;
      ports.onError(error);
    }
    if (isRunning) cancelTimer = ports.clock.startTimer(delayMs, () => void round());
  };
  return {
    start: () => {
      if (isRunning) return;
      isRunning = true;
      void round();
    },
    stop: () => {
      isRunning = false;
      cancelTimer();
    },
  };
};
