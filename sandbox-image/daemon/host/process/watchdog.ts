// Ends this process when its event loop stands still: a thread watches a counter that the loop raises.
// A liveness probe cannot do it in time (with restartPolicy Never its own grace period has no effect).
// Must not know the daemon. Source: 10-kubernetes §7, sandbox-pod §6.
import { Worker } from 'node:worker_threads';

/** How long the loop may stand still. Units: milliseconds. */
export const STANDSTILL_LIMIT_MS = 30_000;

/** Starts watching; gives back how to stop. `terminationFile` gets one line before the end, if it exists. */
export const startWatchdog = (
  settings: Readonly<{ limitMs?: number; terminationFile: string }>,
): (() => Promise<void>) => {
  const limitMs = settings.limitMs ?? STANDSTILL_LIMIT_MS;
  const tickMs = Math.max(10, Math.min(1_000, Math.floor(limitMs / 10)));
  const shared = new SharedArrayBuffer(8);
  const beats = new Int32Array(shared);
  const worker = new Worker(new URL('./watchdog-thread.ts', import.meta.url), {
    workerData: { shared, tickMs, ticks: Math.ceil(limitMs / tickMs), terminationFile: settings.terminationFile },
    env: { LANG: 'C.UTF-8' },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  });
  worker.unref();
  const timer = setInterval(() => {
    Atomics.add(beats, 0, 1);
  }, tickMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    Atomics.store(beats, 1, 1);
    Atomics.notify(beats, 1);
    await worker.terminate();
  };
};
