// The operator put together: caches, facts, election, queues and controllers over ports. It has no effect until its
// parts are started. Must not read the environment; main.ts gives everything. Source: 10-kubernetes §5, §11.
import type { Clock } from '#base/clock.ts';
import type { Part } from '#base/lifecycle.ts';
import type { Logger } from '#base/log.ts';
import type { createMetrics } from '#base/metrics.ts';
import type { KubeClient } from '#kube/client.ts';
import { EventRecorder } from '#kube/events.ts';
import { Informer } from '#kube/informer.ts';
import { LeaderElection, type LeaseTimes, leaseSelection, leaseState } from '#kube/lease.ts';
import { OwnWrites } from '#kube/own-writes.ts';
import { WorkQueue } from '#kube/queue.ts';
import { LEASES } from '#kube/resource-types.ts';
import type { Installation } from '#schema/installation.ts';
import type { METRICS } from '#schema/metrics.ts';
import { reportFleet } from './fleet-metrics.ts';
import type { InternalApi } from './internal-api.ts';
import { makeProjectController } from './project/controller.ts';
import { makeCaches } from './runtime/caches.ts';
import { Facts } from './runtime/facts.ts';
import { makeRunner } from './runtime/runner.ts';
import { ServiceAccounts } from './runtime/service-accounts.ts';
import { makeSessionController } from './session/controller.ts';
import { readNetworkPolicy, readPod, readVolume } from './session/read-pod.ts';

type Metrics = ReturnType<typeof createMetrics<typeof METRICS>>;

/** What an operator needs. */
export type OperatorPorts = Readonly<{
  client: KubeClient;
  api: InternalApi;
  clock: Clock;
  random: () => number;
  log: Logger;
  metrics: Metrics;
  installation: Installation;
  version: string;
  namespaces: readonly string[];
  concurrency: number;
  lease: Readonly<{ namespace: string; name: string; identity: string; times?: LeaseTimes | undefined }>;
  /** Called when the lease was lost: the process must end. */
  onLost: () => void;
}>;

/** The operator of one process. */
export type Operator = Readonly<{
  /** In the order of their start. */
  parts: readonly Part[];
  /** What it waits for before it is ready; empty: ready. Source: K34. */
  waitingFor: () => string[];
  isLeading: () => boolean;
}>;

/** A queue that has keys and runs none for so long does not move. Units: milliseconds. Source: K34. */
const MOVING_LIMIT_MS = 120_000;
/** Requests in flight get so long when the process ends. Units: milliseconds. Source: K35. */
const DRAIN_MS = 5_000;

/** An operator over its ports. */
export const makeOperator = (ports: OperatorPorts): Operator => {
  const { client, api, clock, random, log, installation, version } = ports;
  const { instruments, page } = ports.metrics;
  const ownWrites = new OwnWrites({ clock });
  const informerPorts = { client, clock, random, log, metrics: instruments, ownWrites };
  const caches = makeCaches(informerPorts, ports.namespaces, {
    pod: readPod,
    networkPolicy: readNetworkPolicy,
    volume: readVolume,
  });
  const leases = new Informer(
    { type: LEASES, selection: leaseSelection(ports.lease), project: leaseState },
    informerPorts,
  );
  let leading = false;
  const election = new LeaderElection(
    {
      lease: { namespace: ports.lease.namespace, name: ports.lease.name },
      identity: ports.lease.identity,
      times: ports.lease.times,
      onAcquired: () => void lead(),
      onLost: ports.onLost,
    },
    { client, informer: leases, clock, log, metrics: instruments },
  );
  // Before each write: is the lease surely still ours? Source: K29.
  const writer = client.guarded(() => election.surelyHeld());
  const facts = new Facts({
    open: api.facts,
    clock,
    serverNowMs: client.serverNowMs,
    random,
    log,
    metrics: instruments,
  });
  const serviceAccounts = new ServiceAccounts(writer);
  const events = new EventRecorder({
    client: writer,
    clock,
    log,
    reporter: 'beeuni.dev/operator',
    instance: ports.lease.identity,
  });
  const shared = { client: writer, api, caches, facts, ownWrites, serviceAccounts, clock, installation, version };
  const projects = makeProjectController({
    ...shared,
    informers: informerPorts,
    metrics: instruments,
    add: (key, priority) => projectQueue.add(key, priority),
    addAfter: (key, delayMs) => projectQueue.addAfter(key, delayMs, 'resync'),
  });
  const sessions = makeSessionController({
    ...shared,
    metrics: instruments,
    add: (key, priority) => sessionQueue.add(key, priority),
  });
  const runnerPorts = {
    clock,
    log,
    metrics: instruments,
    note: (...[regarding, note]: Parameters<EventRecorder['note']>) => {
      if (note.reason === 'CleanupTimedOut') instruments.finalizerTimeoutsTotal.inc({});
      events.note(regarding, note);
    },
  };
  const queuePorts = { clock, random, log, metrics: instruments };
  const lanes = ports.concurrency;
  const projectQueue = new WorkQueue(
    { name: 'project', lanes, run: makeRunner(projects.controller, runnerPorts) },
    queuePorts,
  );
  const sessionQueue = new WorkQueue(
    { name: 'session', lanes, run: makeRunner(sessions.controller, runnerPorts) },
    queuePorts,
  );
  const queues = [projectQueue, sessionQueue];
  projects.subscribe();
  sessions.subscribe();

  /** Acts once the caches are complete; until then keys only gather. */
  const lead = async (): Promise<void> => {
    const synced = await Promise.all(caches.informers.map((informer) => informer.whenSynced()));
    if (!synced.every(Boolean) || !election.surelyHeld()) return;
    sessions.begin();
    leading = true;
    log.info('leading', { projects: caches.projects.cache.size(), sessions: caches.sessions.cache.size() });
    for (const queue of queues) queue.start();
  };

  page.onScrape(() => {
    for (const informer of caches.informers) informer.report();
    for (const queue of queues) queue.report();
    facts.report();
    reportFleet(caches, sessions.queued(), instruments);
  });

  const parts: Part[] = [
    {
      name: 'caches',
      start: () => {
        for (const informer of [...caches.informers, leases]) informer.start();
      },
      stop: async () => {
        await Promise.all([...caches.informers, leases].map((informer) => informer.stop()));
      },
    },
    { name: 'facts', start: () => facts.start(), stop: () => facts.stop() },
    { name: 'election', start: () => election.start(), stop: () => election.release() },
    {
      name: 'queues',
      start: () => {},
      stop: async () => {
        sessions.stop();
        await Promise.all([projects.stop(), ...queues.map((queue) => queue.drain(DRAIN_MS))]);
      },
    },
  ];

  return {
    parts,
    waitingFor: () => {
      const stale = [...caches.informers, leases].filter((informer) => informer.isStale());
      const waiting = stale.map(({ type }) => `cache of ${type.plural}`);
      if (leading && !queues.every((queue) => queue.isMoving(MOVING_LIMIT_MS))) waiting.push('work queue');
      return waiting;
    },
    isLeading: () => leading && election.surelyHeld(),
  };
};
