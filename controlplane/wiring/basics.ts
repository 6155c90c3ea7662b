// What main.ts makes once and every part of the wiring is given. Must not know any part.
import type { Clock } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { Instruments } from '#base/metrics.ts';
import type { METRICS } from '#schema/metrics.ts';
import type { RandomBytes, Seal, Unseal } from '../app/ports.ts';
import type { ControlPlaneConfig } from '../config.ts';
import type { Resources } from '../kubernetes/resources.ts';
import type { Pool } from '../store/pool.ts';

/** The things of the process. */
export type Basics = Readonly<{
  config: ControlPlaneConfig;
  clock: Clock;
  random: () => number;
  randomBytes: RandomBytes;
  log: Logger;
  instruments: Instruments<typeof METRICS>;
  databaseUrl: string;
  database: Pool;
  resources: Resources;
  seal: Seal;
  unseal: Unseal;
  /** Fires when the process begins to stop: calls that only wait end at once. */
  stopping: AbortSignal;
}>;

/** A part that runs in the background. */
export type Background = Readonly<{
  name: string;
  start: () => Promise<void> | void;
  stop: () => Promise<void> | void;
}>;

/**
 * Repeats work for ever, the first time after one interval unless `firstAfterMs` says otherwise; a failure is logged and
 * the next round comes all the same.
 */
export const makeRounds = (
  basics: Pick<Basics, 'clock' | 'log'>,
  name: string,
  intervalMs: number,
  work: () => Promise<unknown>,
  firstAfterMs: number = intervalMs,
): Background => {
  let cancel = (): void => {};
  let running: Promise<unknown> = Promise.resolve();
  let isStopped = false;
  const plan = (afterMs: number): void => {
    if (isStopped) return;
    cancel = basics.clock.startTimer(afterMs, () => {
      running = work()
        .catch((error: unknown) => basics.log.warn('a round failed', { round: name, err: error }))
        .finally(() => plan(intervalMs));
    });
  };
  return {
    name,
    start: () => plan(firstAfterMs),
    stop: async () => {
      isStopped = true;
      cancel();
      await running;
    },
  };
};
