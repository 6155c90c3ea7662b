// One leader among processes by one Lease, which standbys watch. Must not know what the leader does.
//
//   standby ──(lease free or expired, write accepted)──> leader ──(release)──> ended
//                                                          └──(not renewed in time, another holder)──> lost
//
// Everything is measured on the monotonic clock: renewTime of another holder is only compared for change.
import { type Clock, sleep } from '#base/clock.ts';
import { errorChain } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { Instruments } from '#base/metrics.ts';
import { onAbort } from '#base/on-abort.ts';
import type { LEADER_METRICS } from '#schema/metrics.ts';
import { mergePatch } from './apply.ts';
import type { KubeClient } from './client.ts';
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts';
import type { Informer } from './informer.ts';
import { microTime } from './micro-time.ts';
import { type KubeObject, keyOf, LEASES, type ObjectRef } from './resource-types.ts';

/** Times of a lease. Units: milliseconds. Source: K35. */
export type LeaseTimes = Readonly<{
  /** After this long without a renewal others may take it. Whole seconds. */
  durationMs: number;
  /** After this long without a renewal the holder gives up. */
  renewDeadlineMs: number;
  /** Between renewals, and between tries. */
  retryMs: number;
}>;

/** 15 s, 10 s, 2 s. Source: K35. */
export const LEASE_TIMES: LeaseTimes = { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

/** What is kept of a Lease. */
export type LeaseState = Readonly<{
  holder: string;
  renewTime: string;
  durationMs: number;
  transitions: number;
}>;

/** How a process stands for election. */
export type LeaseOptions = Readonly<{
  lease: ObjectRef & Readonly<{ namespace: string }>;
  /** Unique to this process, for example the pod's name and uid. */
  identity: string;
  times?: LeaseTimes | undefined;
  /** Called once when the lease is ours. */
  onAcquired: () => void;
  /** Called once when it was ours and no longer surely is: the process must end. */
  onLost: () => void;
}>;

/** What an election needs. `informer` watches the one Lease and is started by the caller. */
export type LeasePorts = Readonly<{
  client: KubeClient;
  informer: Informer<LeaseState>;
  clock: Clock;
  log: Logger;
  metrics: Instruments<typeof LEADER_METRICS>;
}>;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** Projection of a Lease for the informer. */
export const leaseState = (object: KubeObject): LeaseState => {
  const spec = (object['spec'] ?? {}) as Readonly<Record<string, unknown>>;
  return {
    holder: text(spec['holderIdentity']),
    renewTime: text(spec['renewTime']),
    durationMs: number(spec['leaseDurationSeconds']) * 1_000,
    transitions: number(spec['leaseTransitions']),
  };
};

/** Selection under which an informer sees one Lease only. */
export const leaseSelection = (lease: LeaseOptions['lease']) => ({
  namespace: lease.namespace,
  fieldSelector: `metadata.name=${lease.name}`,
});

const MANAGER = 'beeuni-leader-election';

/** The election of one process. Started once. */
export class LeaderElection {
  readonly #options: LeaseOptions;
  readonly #ports: LeasePorts;
  readonly #times: LeaseTimes;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #state: 'standby' | 'leader' | 'lost' | 'released' = 'standby';
  /** Monotonic time just before the last accepted renewal was sent. */
  #renewedMs = Number.NEGATIVE_INFINITY;
  #resourceVersion = '';
  /** The last renewal seen of another holder, and when it was first seen. */
  #seen = { mark: '', atMs: 0 };
  #wake: () => void = () => {};

  constructor(options: LeaseOptions, ports: LeasePorts) {
    this.#options = options;
    this.#ports = ports;
    this.#times = options.times ?? LEASE_TIMES;
    ports.informer.subscribe(() => this.#wake());
  }

  /** Begins to stand for election. Throws TypeError when called again. */
  start(): void {
    if (this.#running !== undefined) throw new TypeError('the election was started already');
    this.#ports.metrics.leader.set({}, 0);
    this.#running = this.#run();
  }

  /**
   * True while nobody else can hold the lease: it was renewed less than the renew deadline ago on the monotonic clock,
   * which also runs while the process is stopped. To be asked before each write. Source: K29.
   */
  surelyHeld(): boolean {
    return this.#state === 'leader' && this.#ports.clock.monotonicMs() - this.#renewedMs < this.#times.renewDeadlineMs;
  }

  /** Ends the election and, when the lease is ours, gives it back so that a standby acts at once. Source: K35. */
  async release(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    if (this.#state !== 'leader') return;
    const mayRelease = this.surelyHeld();
    this.#state = 'released';
    this.#ports.metrics.leader.set({}, 0);
    if (!mayRelease) return;
    try {
      await this.#write({
        holderIdentity: '',
        leaseDurationSeconds: 1,
        renewTime: microTime(this.#ports.clock.nowMs()),
      });
      this.#ports.log.info('lease released');
    } catch (error) {
      this.#ports.log.warn('the lease could not be released', { cause: errorChain(error) });
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { clock, log } = this.#ports;
    while (!signal.aborted) {
      if (this.#state === 'standby') {
        const waitMs = this.#untilFreeMs();
        if (waitMs <= 0) await this.#acquire();
        if (this.#state === 'standby')
          await this.#waitForChange(Math.max(waitMs, waitMs <= 0 ? this.#times.retryMs : 1));
        continue;
      }
      if (this.#state !== 'leader') return;
      const dueMs = this.#renewedMs + this.#times.retryMs - clock.monotonicMs();
      await sleep(clock, dueMs, signal);
      if (signal.aborted) return;
      const outcome = await this.#renew();
      if (outcome === 'renewed') continue;
      if (outcome === 'taken' || !this.surelyHeld()) {
        this.#state = 'lost';
        this.#ports.metrics.leader.set({}, 0);
        log.error('lease lost', { reason: outcome });
        this.#options.onLost();
        return;
      }
      await sleep(clock, Math.min(this.#times.retryMs, 1_000), signal);
    }
  }

  /** Time until the lease may be tried. Units: milliseconds; 0 or less: now. */
  #untilFreeMs(): number {
    const { informer, clock } = this.#ports;
    if (!informer.hasSynced()) return this.#times.retryMs;
    const entry = informer.cache.entry(keyOf(this.#options.lease));
    if (entry?.value === undefined || entry.value.holder === '') return 0;
    const mark = `${entry.uid} ${entry.value.holder} ${entry.value.renewTime}`;
    if (mark !== this.#seen.mark) this.#seen = { mark, atMs: clock.monotonicMs() };
    const durationMs = Math.max(entry.value.durationMs, this.#times.durationMs);
    return this.#seen.atMs + durationMs - clock.monotonicMs();
  }

  async #waitForChange(limitMs: number): Promise<void> {
    const changed = new AbortController();
    const end = () => changed.abort();
    this.#wake = end;
    // It may have been asked to stop while it tried for the lease.
    const forget = onAbort(this.#stop.signal, end);
    await sleep(this.#ports.clock, limitMs, changed.signal);
    forget();
    this.#wake = () => {};
  }

  async #acquire(): Promise<void> {
    const { client, informer, clock, log, metrics } = this.#ports;
    const { lease, identity } = this.#options;
    const entry = informer.cache.entry(keyOf(lease));
    const sentMs = clock.monotonicMs();
    const now = microTime(clock.nowMs());
    const spec = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#times.durationMs / 1_000),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: (entry?.value?.transitions ?? -1) + 1,
    };
    try {
      if (entry === undefined) {
        const created = await client.create(
          LEASES,
          { metadata: { ...lease }, spec },
          { manager: MANAGER, signal: this.#stop.signal, timeoutMs: this.#times.renewDeadlineMs },
        );
        this.#resourceVersion = created.metadata.resourceVersion ?? '';
      } else {
        this.#resourceVersion = entry.resourceVersion;
        await this.#write(spec);
      }
    } catch (error) {
      const lostRace = isConflict(error) || isAlreadyExists(error) || isNotFound(error);
      if (!lostRace && !this.#stop.signal.aborted)
        log.warn('the lease could not be taken', { cause: errorChain(error) });
      return;
    }
    this.#renewedMs = sentMs;
    this.#state = 'leader';
    metrics.leader.set({}, 1);
    log.info('lease acquired', { transitions: spec.leaseTransitions });
    this.#options.onAcquired();
  }

  async #renew(): Promise<'renewed' | 'failed' | 'taken'> {
    const { clock, log } = this.#ports;
    // A process that slept too long may not renew: another holder may have come and gone.
    if (!this.surelyHeld()) return 'failed';
    const sentMs = clock.monotonicMs();
    try {
      await this.#write({ renewTime: microTime(clock.nowMs()) });
      this.#renewedMs = sentMs;
      return 'renewed';
    } catch (error) {
      if (this.#stop.signal.aborted) return 'failed';
      log.warn('the lease could not be renewed', { cause: errorChain(error) });
      if (!isConflict(error)) return isNotFound(error) ? 'taken' : 'failed';
      return (await this.#isStillOurs()) ? 'failed' : 'taken';
    }
  }

  /** After a conflict: our own write whose answer was lost, or somebody's label, is no loss. */
  async #isStillOurs(): Promise<boolean> {
    const { client } = this.#ports;
    const object = await client
      .get(LEASES, this.#options.lease, { timeoutMs: this.#times.retryMs })
      .catch(() => undefined);
    if (object === undefined || leaseState(object).holder !== this.#options.identity) return false;
    this.#resourceVersion = object.metadata.resourceVersion ?? '';
    return true;
  }

  async #write(spec: Readonly<Record<string, unknown>>): Promise<void> {
    const { client } = this.#ports;
    const written = await mergePatch(
      client,
      LEASES,
      this.#options.lease,
      { metadata: { resourceVersion: this.#resourceVersion }, spec },
      { manager: MANAGER, timeoutMs: this.#times.retryMs * 2 },
    );
    this.#resourceVersion = written.metadata.resourceVersion ?? '';
  }
}
