// Ends this process when its event loop stands still: a thread watches a counter that the loop raises.
// A liveness probe cannot do it in time (with restartPolicy Never its own grace period has no effect).
// Must not know the daemon. Source: 10-kubernetes §7, sandbox-pod §6.
import { Worker } from 'node:worker_threads';

/** How long the loop may stand still. Units: milliseconds. */
export const STANDSTILL_LIMIT_MS = 30_000;

/**
 * The thread, as text: a thread that loads a TypeScript module costs 20 MB more (measured). It counts its own ticks, not
 * time, so that a process that was stopped as a whole is not judged, and uses nothing that needs the main thread.
 */
const THREAD = `
const { closeSync, openSync, writeSync } = require('node:fs');
const { shared, tickMs, ticks, terminationFile } = require('node:worker_threads').workerData;
const beats = new Int32Array(shared);
let last = Atomics.load(beats, 0);
let missed = 0;
while (Atomics.load(beats, 1) === 0) {
  Atomics.wait(beats, 1, 0, tickMs);
  const now = Atomics.load(beats, 0);
  missed = now === last ? missed + 1 : 0;
  last = now;
  if (missed < ticks || Atomics.load(beats, 1) !== 0) continue;
  try {
    const file = openSync(terminationFile, 'r+');
    writeSync(file, 'the event loop of the daemon stood still; it ended itself\\n');
    closeSync(file);
  } catch {}
  process.kill(process.pid, 'SIGKILL');
}
`;

/** Starts watching; gives back how to stop. `terminationFile` gets one line before the end, if it exists. */
export const startWatchdog = (
  settings: Readonly<{ limitMs?: number; terminationFile: string }>,
): (() => Promise<void>) => {
  const limitMs = settings.limitMs ?? STANDSTILL_LIMIT_MS;
  const tickMs = Math.max(10, Math.min(1_000, Math.floor(limitMs / 10)));
  const shared = new SharedArrayBuffer(8);
  const beats = new Int32Array(shared);
  const worker = new Worker(THREAD, {
    eval: true,
    workerData: { shared, tickMs, ticks: Math.ceil(limitMs / tickMs), terminationFile: settings.terminationFile },
    env: { LANG: 'C.UTF-8' },
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 1 },
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
