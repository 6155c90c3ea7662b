// One life of the thread that Pi runs in: started with an environment of named entries and a bounded heap, asked whether
// it still answers, and ended; an end that does not come is told. Must not know what it runs.
// Source: D13, FB10, harness-runtimes §3.5.
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '#base/clock.ts';
import { sleep } from '#base/clock.ts';
import type { FromWorker, ToWorker, WorkerStart } from './protocol.ts';

/** Times and sizes that a test may shorten. Units: milliseconds, MiB. */
export type ThreadLimits = Readonly<{
  probeIntervalMs: number;
  missedProbes: number;
  /** How long an end may take before the thread counts as stuck in a system call. */
  terminateMs: number;
  /** How long a start may take. */
  startMs: number;
  heapMb: number;
}>;

/** Limits of production. */
export const THREAD_LIMITS: ThreadLimits = {
  probeIntervalMs: 10_000,
  missedProbes: 3,
  terminateMs: 5_000,
  startMs: 120_000,
  heapMb: 320,
};

/** How a thread ended. `stuck`: it did not, and only the end of the process ends it. */
export type ThreadEnd = Readonly<{ reason: string; stuck: boolean }>;

/** A started thread. */
export type PiThread = Readonly<{
  send: (message: ToWorker) => void;
  /** Ends it; the reason is what `ended` says. */
  end: (reason: string) => void;
  ended: Promise<ThreadEnd>;
}>;

/** Environment by which a thread uses the same compiled code as this process; empty when the process uses none. */
export const compileCacheEnvironment = (): Readonly<Record<string, string>> => {
  const folder = getCompileCacheDir();
  // Node adds a folder of its own version below the one that it is given.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder), NODE_COMPILE_CACHE_PORTABLE: '1' };
};

/** Starts a thread. `entry`: URL of its code. */
export const startThread = (
  ports: Readonly<{
    entry: URL;
    start: WorkerStart;
    /** All that the thread's environment holds; never empty, for then Pi would read the process's own. */
    environment: Readonly<Record<string, string>>;
    limits: ThreadLimits;
    onMessage: (message: FromWorker) => void;
    output: (line: string) => void;
    clock: Clock;
  }>,
): PiThread => {
  const { limits, clock } = ports;
  const worker = new Worker(ports.entry, {
    workerData: ports.start,
    env: { ...ports.environment },
    execArgv: [],
    argv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: limits.heapMb },
  });
  const over = new AbortController();
  const finished = Promise.withResolvers<ThreadEnd>();
  let reason: string | undefined;
  let lastPong = 0;
  let isReady = false;

  const end = (why: string): void => {
    if (over.signal.aborted || reason !== undefined) return;
    reason = why;
    void worker.terminate();
    void sleep(clock, limits.terminateMs, over.signal).then((isLate) => {
      if (isLate) finished.resolve({ reason: why, stuck: true });
    });
  };
  for (const stream of [worker.stdout, worker.stderr]) {
    let rest = '';
    stream.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = (lines.pop() ?? '').slice(-4_096);
      for (const line of lines) ports.output(line);
    });
  }
  worker.on('message', (message: FromWorker) => {
    if (message.kind === 'pong') lastPong = message.n;
    else {
      if (message.kind === 'ready') isReady = true;
      ports.onMessage(message);
    }
  });
  worker.once('error', (error: Error & { code?: string }) => {
    reason ??= error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'its memory was used up' : `it failed: ${error.message}`;
  });
  worker.once('exit', (code) => {
    over.abort();
    finished.resolve({ reason: reason ?? `it ended with code ${code}`, stuck: false });
  });

  const watch = async (): Promise<void> => {
    const begin = clock.monotonicMs();
    for (let n = 1; await sleep(clock, limits.probeIntervalMs, over.signal); n += 1) {
      if (!isReady) {
        if (clock.monotonicMs() - begin > limits.startMs) end('it did not start');
        n = 0;
        continue;
      }
      if (n - 1 - lastPong >= limits.missedProbes) end('it did not answer');
      else worker.postMessage({ kind: 'ping', n } satisfies ToWorker);
    }
  };
  void watch();
  return {
    send: (message) => worker.postMessage(message),
    end,
    ended: finished.promise,
  };
};
