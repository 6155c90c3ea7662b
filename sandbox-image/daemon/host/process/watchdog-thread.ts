// The thread of watchdog.ts. It counts its own ticks, not time: a process that was stopped as a whole is not judged.
// Must not use anything that needs the main thread.
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

const { shared, tickMs, ticks, terminationFile } = workerData as {
  shared: SharedArrayBuffer;
  tickMs: number;
  ticks: number;
  terminationFile: string;
};
const beats = new Int32Array(shared);
const MESSAGE = 'the event loop of the daemon stood still; it ended itself\n';

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
    ftruncateSync(file, 0);
    writeSync(file, MESSAGE);
    closeSync(file);
  } catch {
    // Outside of a pod there is no such file.
  }
  process.kill(process.pid, 'SIGKILL');
}
