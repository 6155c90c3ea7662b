// A work queue of keys: a key waits once, runs once, never twice at a time; failures back off, timers wait.
// Must not know what a key stands for. Source: K36, K37.
import { type BackoffBounds, backoffMs, QUEUE_BACKOFF } from '#base/backoff.ts';
import { type CancelTimer, type Clock, sleep } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { Instruments } from '#base/metrics.ts';
import { onAbort } from '#base/on-abort.ts';
import type { QUEUE_METRICS } from '#schema/metrics.ts';

/** Changes by persons go before resyncs. */
export type Priority = 'person' | 'resync';

/** What a run says about its key. A run that throws is the same as `retry`. */
export type RunOutcome =
  /** Failures are forgotten; `recheckAfterMs` is a wish to run again. */
  | Readonly<{ kind: 'done'; recheckAfterMs?: number | undefined }>
  /** Runs again after the back-off, and not before `afterMs`. */
  | Readonly<{ kind: 'retry'; afterMs?: number | undefined }>;

/** How a queue works. */
export type QueueOptions = Readonly<{
  /** Metric label. */
  name: string;
  /** Runs at the same time; keys are hashed onto lanes. */
  lanes: number;
  /** Must end soon after `signal` fires; until then the lane is taken. */
  run: (key: string, signal: AbortSignal) => Promise<RunOutcome>;
  /** Of one run. Units: milliseconds; 30_000 when absent. */
  timeLimitMs?: number | undefined;
  backoff?: BackoffBounds | undefined;
}>;

/** What a queue needs. */
export type QueuePorts = Readonly<{
  clock: Clock;
  random: () => number;
  log: Logger;
  metrics: Instruments<typeof QUEUE_METRICS>;
}>;

const DEFAULT_TIME_LIMIT_MS = 30_000;

type Lane = {
  /** Waiting keys with the monotonic time of queueing; maps keep the order of insertion. */
  readonly waiting: Readonly<Record<Priority, Map<string, number>>>;
  running: string | undefined;
  /** The running key, when it changed during its run. */
  again: Priority | undefined;
};

type Timer = Readonly<{ dueMs: number; cancel: CancelTimer }>;

const laneOf = (key: string, lanes: number): number => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % lanes;
};

/** The queue of one controller. It takes keys at once and runs them after `start`. */
export class WorkQueue {
  readonly #options: QueueOptions;
  readonly #ports: QueuePorts;
  readonly #lanes: readonly Lane[];
  readonly #failures = new Map<string, number>();
  readonly #timers = new Map<string, Timer>();
  readonly #stop = new AbortController();
  readonly #idle = new Set<() => void>();
  #state: 'new' | 'running' | 'draining' = 'new';
  #lastRunMs: number;

  constructor(options: QueueOptions, ports: QueuePorts) {
    this.#options = options;
    this.#ports = ports;
    this.#lanes = Array.from({ length: Math.max(1, options.lanes) }, () => ({
      waiting: { person: new Map(), resync: new Map() },
      running: undefined,
      again: undefined,
    }));
    this.#lastRunMs = ports.clock.monotonicMs();
  }

  /** Queues a key. One that waits already keeps its place; one that runs is run again afterwards. */
  add(key: string, priority: Priority = 'person'): void {
    if (this.#state === 'draining') return;
    const lane = this.#laneOf(key);
    if (lane.running === key) {
      if (lane.again !== 'person') lane.again = priority;
      return;
    }
    if (lane.waiting.person.has(key)) return;
    const { metrics, clock } = this.#ports;
    const waitsSinceMs = lane.waiting.resync.get(key);
    if (waitsSinceMs !== undefined && priority === 'resync') return;
    lane.waiting.resync.delete(key);
    lane.waiting[priority].set(key, waitsSinceMs ?? clock.monotonicMs());
    if (waitsSinceMs === undefined) metrics.workqueueAddsTotal.inc({ queue: this.#options.name });
    this.#pump(lane);
  }

  /** Queues a key later. Of several wishes for a key the earliest counts. */
  addAfter(key: string, delayMs: number, priority: Priority = 'person'): void {
    if (this.#state === 'draining') return;
    if (delayMs <= 0) return this.add(key, priority);
    const { clock } = this.#ports;
    const dueMs = clock.monotonicMs() + delayMs;
    const earlier = this.#timers.get(key);
    if (earlier !== undefined && earlier.dueMs <= dueMs) return;
    earlier?.cancel();
    const cancel = clock.startTimer(delayMs, () => {
      this.#timers.delete(key);
      this.add(key, priority);
    });
    this.#timers.set(key, { dueMs, cancel });
  }

  /** Begins to run keys. */
  start(): void {
    if (this.#state !== 'new') throw new TypeError('the queue was started already');
    this.#state = 'running';
    for (const lane of this.#lanes) this.#pump(lane);
  }

  /**
   * Takes no more keys, waits up to `limitMs` for the runs in flight, then aborts them and waits for their end.
   * Resolves true when nothing had to be aborted. Source: K35.
   */
  async drain(limitMs: number): Promise<boolean> {
    this.#state = 'draining';
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
    for (const lane of this.#lanes) {
      lane.waiting.person.clear();
      lane.waiting.resync.clear();
      lane.again = undefined;
    }
    const inTime = new AbortController();
    const idle = this.#whenIdle().then(() => inTime.abort());
    const tooLate = await sleep(this.#ports.clock, limitMs, inTime.signal);
    if (tooLate) this.#stop.abort();
    await idle;
    return !tooLate;
  }

  /** Keys that wait; running keys and timers do not count. */
  depth(): number {
    return this.#lanes.reduce((sum, { waiting }) => sum + waiting.person.size + waiting.resync.size, 0);
  }

  /** Age of the key that waits longest. Units: milliseconds; 0 when none waits. */
  oldestAgeMs(): number {
    const firsts = this.#lanes.flatMap(({ waiting }) => [...first(waiting.person), ...first(waiting.resync)]);
    return firsts.length === 0 ? 0 : this.#ports.clock.monotonicMs() - Math.min(...firsts);
  }

  /** True when no key waits, or one was run within the limit: the queue moves. Source: K34. */
  isMoving(limitMs: number): boolean {
    return this.depth() === 0 || this.#ports.clock.monotonicMs() - this.#lastRunMs <= limitMs;
  }

  /** Sets the gauges; for `onScrape`. */
  report(): void {
    const queue = this.#options.name;
    this.#ports.metrics.workqueueDepth.set({ queue }, this.depth());
    this.#ports.metrics.workqueueOldestAgeSeconds.set({ queue }, this.oldestAgeMs() / 1_000);
  }

  #laneOf(key: string): Lane {
    return this.#lanes[laneOf(key, this.#lanes.length)] as Lane;
  }

  #pump(lane: Lane): void {
    if (this.#state !== 'running' || lane.running !== undefined) return;
    const waiting = lane.waiting.person.size > 0 ? lane.waiting.person : lane.waiting.resync;
    const [next] = waiting;
    if (next === undefined) return;
    const [key, sinceMs] = next;
    waiting.delete(key);
    lane.running = key;
    const { clock, metrics } = this.#ports;
    this.#lastRunMs = clock.monotonicMs();
    metrics.workqueueWaitDurationSeconds.observe({ queue: this.#options.name }, (this.#lastRunMs - sinceMs) / 1_000);
    void this.#runOne(lane, key);
  }

  async #runOne(lane: Lane, key: string): Promise<void> {
    const { clock, log } = this.#ports;
    const controller = new AbortController();
    const onStop = () => controller.abort();
    const forget = onAbort(this.#stop.signal, onStop);
    const cancelLimit = clock.startTimer(this.#options.timeLimitMs ?? DEFAULT_TIME_LIMIT_MS, onStop);
    let outcome: RunOutcome;
    try {
      outcome = await this.#options.run(key, controller.signal);
    } catch (error) {
      log.error('a run threw', { queue: this.#options.name, key, err: error });
      outcome = { kind: 'retry' };
    }
    cancelLimit();
    forget();
    lane.running = undefined;
    this.#settle(lane, key, outcome);
    this.#pump(lane);
    if (this.#lanes.every(({ running }) => running === undefined)) {
      for (const wake of this.#idle) wake();
      this.#idle.clear();
    }
  }

  #settle(lane: Lane, key: string, outcome: RunOutcome): void {
    const changed = lane.again;
    lane.again = undefined;
    if (outcome.kind === 'done') {
      this.#failures.delete(key);
      if (outcome.recheckAfterMs !== undefined) this.addAfter(key, outcome.recheckAfterMs, 'resync');
    } else {
      const failures = (this.#failures.get(key) ?? 0) + 1;
      this.#failures.set(key, failures);
      const { metrics, random } = this.#ports;
      metrics.workqueueRetriesTotal.inc({ queue: this.#options.name });
      const pauseMs = backoffMs(this.#options.backoff ?? QUEUE_BACKOFF, failures, random);
      this.addAfter(key, Math.max(pauseMs, outcome.afterMs ?? 0), 'resync');
    }
    if (changed !== undefined) this.add(key, changed);
  }

  #whenIdle(): Promise<void> {
    if (this.#lanes.every(({ running }) => running === undefined)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.add(resolve);
    });
  }
}

const first = (waiting: ReadonlyMap<string, number>): number[] => {
  const [next] = waiting.values();
  return next === undefined ? [] : [next];
};
