// Looks for projects whose remote is due, a few seconds apart with jitter. Must not know what a look does.
import type { Clock } from '#base/clock.ts';
import { sleep } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';

/** A background task: `start` returns at once, `stop` resolves when the running round has ended. */
export type Poller = Readonly<{ start: () => void; stop: () => Promise<void> }>;

/** Makes the poller. `everyMs`: pause between rounds, ±20 %. */
export const makeProjectPoller = (
  ports: Readonly<{ lookAtDue: () => Promise<void>; everyMs: number; clock: Clock; random: () => number; log: Logger }>,
): Poller => {
  const controller = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const loop = async (): Promise<void> => {
    while (await sleep(ports.clock, ports.everyMs * (0.8 + ports.random() * 0.4), controller.signal)) {
      try {
        await ports.lookAtDue();
      } catch (error) {
        ports.log.warn('projects that are due could not be looked up', { err: error });
      }
    }
  };
  return {
    start: () => {
      running = loop();
    },
    stop: () => {
      controller.abort();
      return running;
    },
  };
};
