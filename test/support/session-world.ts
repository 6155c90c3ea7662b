// A model world for the session controller: maps that actions change, a kubelet and a daemon that follow.
// It is no copy of the API server: it knows only what plans read. Used for fixed points and crashes anywhere.
import assert from 'node:assert/strict';
import { deepFreeze } from '#kube/cache.ts';
import { FINALIZERS } from '#kube/names.ts';
import type { KubeObject } from '#kube/resource-types.ts';
import type { SessionAction } from '#operator/session/actions.ts';
import { sessionStatusChange } from '#operator/session/major.ts';
import type {
  ObservedNetworkPolicy,
  ObservedPod,
  ObservedSession,
  ObservedVolume,
  Slot,
  StopProgress,
} from '#operator/session/observed.ts';
import { planSession, type SessionPlan } from '#operator/session/plan.ts';
import { readNetworkPolicy, readPod, readVolume } from '#operator/session/read-pod.ts';
import { type Session, SessionKind, type SessionSpecInput, type SessionStatus } from '#schema/resources/session.ts';
import type { SessionFact } from '#schema/wire/sync.ts';
import type { ModelWorld } from './controller-suite.ts';
import {
  aHealth,
  anInstallation,
  aProject,
  aProjectFact,
  aRegistryFact,
  aSession,
  aSessionFact,
  at,
  NOON_MS,
} from './session-fixtures.ts';

/** Actions that send nothing to the API server. */
const NO_WRITES: ReadonlySet<SessionAction['kind']> = new Set([
  'requestSlot',
  'releaseSlot',
  'stopSession',
  'reportPodGone',
  'closeSession',
  'noteDue',
  'forgetDue',
]);

/** What a world counts. */
export type WorldCounts = { statusWrites: number; writes: string[] };

/** One Session and all around it. */
export class SessionWorld {
  now = NOON_MS;
  session: Session | undefined;
  networkPolicy: ObservedNetworkPolicy | undefined;
  volume: ObservedVolume | undefined;
  pods: ObservedPod[] = [];
  fact: SessionFact | undefined;
  controlPlane: ObservedSession['controlPlane']['state'] = 'available';
  project = aProject();
  projectFact = aProjectFact();
  installation = anInstallation();
  slot: Slot = { state: 'none' };
  stop: StopProgress | undefined;
  reportedGone: string[] = [];
  closed = false;
  readonly counts: WorldCounts = { statusWrites: 0, writes: [] };
  /** Every uid of a pod that ever was. */
  readonly podUids: string[] = [];
  #version = 100;

  constructor(spec: Partial<SessionSpecInput> = {}) {
    this.session = aSession(spec);
  }

  /** The world as the controller suite knows worlds. */
  model(): ModelWorld {
    return {
      plan: () => this.plan(),
      pass: (steps) => this.pass(steps),
      settle: () => this.settle(),
      restart: () => this.restartOperator(),
      surroundings: () => {
        const followed = this.kubelet();
        return this.daemon() || followed;
      },
    };
  }

  /** What the controller would see now, frozen to the bottom. */
  observe(): ObservedSession | undefined {
    if (this.session === undefined) return undefined;
    return deepFreeze(
      structuredClone({
        now: this.now,
        session: this.session,
        project: this.project,
        projectFact: this.projectFact,
        fact: this.fact,
        registry: aRegistryFact(),
        controlPlane: { state: this.controlPlane, lastContactMs: this.now },
        networkPolicy: this.networkPolicy,
        volume: this.volume,
        pods: this.pods,
        unseen: { networkPolicy: false, volume: false, pod: false },
        serviceAccountSeen: true,
        slot: this.pods.length > 0 ? { state: 'none' as const } : this.slot,
        unfinishedBefore: 0,
        branchHeldBy: undefined,
        stop: this.stop,
        reportedGone: this.reportedGone,
        dueForDeletionMs: undefined,
        installation: this.installation,
        version: '0.1.0',
      }),
    );
  }

  /** The plan of what is seen now; undefined once the Session is gone. */
  plan(): SessionPlan | undefined {
    const o = this.observe();
    return o === undefined ? undefined : planSession(o);
  }

  /** One pass that dies after `steps` of its actions; the status is the step after the last. Gives back whether anything changed. */
  pass(steps = Number.POSITIVE_INFINITY): boolean {
    const plan = this.plan();
    if (plan === undefined) return false;
    const actions = plan.actions.slice(0, steps);
    for (const action of actions) this.perform(action);
    if (steps <= plan.actions.length) return actions.length > 0;
    const wrote = plan.status !== undefined && !plan.inTransit && this.#writeStatus(plan.status);
    return actions.length > 0 || wrote;
  }

  /** Passes, kubelet and daemon until nothing moves any more. */
  settle(limit = 200): void {
    for (let n = 0; n < limit; n += 1) {
      const moved = this.pass();
      const followed = this.kubelet();
      const answered = this.daemon();
      if (!moved && !followed && !answered) return;
    }
    assert.fail(`the world did not settle: ${JSON.stringify(this.plan(), undefined, 1)}`);
  }

  /** The operator dies: what it remembers is gone, what is written stays. */
  restartOperator(): void {
    this.stop = undefined;
    this.slot = { state: 'none' };
    this.reportedGone = [];
  }

  /** Schedules and starts pods; ends those that are being deleted. */
  kubelet(): boolean {
    let moved = false;
    this.pods = this.pods.flatMap((pod) => {
      if (pod.deleting) {
        moved = true;
        return [];
      }
      if (pod.phase !== 'Pending' && pod.phase !== '') return [pod];
      moved = true;
      const yes = { status: 'True', reason: '', message: '', sinceMs: undefined };
      const running: Partial<ObservedPod> = {
        phase: 'Running',
        node: 'node-1',
        ip: '10.1.2.3',
        ready: yes,
        scheduled: yes,
        containersReady: true,
        container: { state: 'running' },
      };
      return [{ ...pod, ...running }];
    });
    return moved;
  }

  /** The daemon of the bound running pod claims and reports that it is ready. */
  daemon(): boolean {
    const bound = this.session?.status?.pod?.uid;
    const pod = this.pods.find(({ uid, phase, deleting }) => uid === bound && phase === 'Running' && !deleting);
    if (pod === undefined || this.fact?.podUid === pod.uid) return false;
    this.fact = aSessionFact(pod.uid, {
      generation: (this.fact?.generation ?? 0) + 1,
      health: aHealth({ harness: { id: pod.harness, version: '1', state: 'ok', ready: true, error: null } }),
      specPromptFinal: this.fact?.specPromptFinal ?? null,
      wanted: this.fact?.wanted ?? false,
    });
    return true;
  }

  /** Changes the spec as a user does. */
  edit(spec: Partial<SessionSpecInput>): void {
    if (this.session === undefined) return;
    const { metadata } = this.session;
    this.session = SessionKind.object.parse({
      ...this.session,
      metadata: { ...metadata, generation: metadata.generation + 1, resourceVersion: this.#next() },
      spec: { ...this.session.spec, ...spec },
    });
  }

  /** Deletes the Session as a user does. */
  delete(): void {
    if (this.session === undefined || this.session.metadata.deletionTimestamp !== undefined) return;
    if (this.session.metadata.finalizers.length === 0) {
      this.session = undefined;
      return;
    }
    const { metadata } = this.session;
    this.session = {
      ...this.session,
      metadata: {
        ...metadata,
        deletionTimestamp: at((this.now - NOON_MS) / 1_000),
        generation: metadata.generation + 1,
      },
    };
  }

  /** Changes the newest pod. */
  harm(changes: Partial<ObservedPod>): void {
    this.pods = this.pods.map((pod, n) => (n === this.pods.length - 1 ? { ...pod, ...changes } : pod));
  }

  /** Does what one action asks for. */
  perform(action: SessionAction): void {
    if (!NO_WRITES.has(action.kind)) this.counts.writes.push(action.kind);
    switch (action.kind) {
      case 'addFinalizer':
        return this.#setFinalizers([FINALIZERS.session]);
      case 'releaseFinalizer':
        return this.#setFinalizers([]);
      case 'applyNetworkPolicy':
        this.networkPolicy = readNetworkPolicy(this.#stored(action.object));
        return;
      case 'createVolume':
        assert.equal(this.volume, undefined, 'a second volume');
        this.volume = { ...readVolume(this.#stored(action.object)), phase: 'Bound' };
        return;
      case 'retainVolume':
        if (this.volume !== undefined) this.volume = { ...this.volume, retained: true };
        return;
      case 'createPod': {
        assert.equal(this.pods.length, 0, 'K15: a second pod');
        assert.ok(this.networkPolicy, 'K21: a pod without its network policy');
        const pod = readPod(this.#stored(action.object));
        assert.ok(!this.podUids.includes(pod.uid));
        this.podUids.push(pod.uid);
        this.pods.push({ ...pod, createdMs: this.now, phase: 'Pending' });
        this.slot = { state: 'none' };
        return;
      }
      case 'deletePod':
        this.pods = this.pods.map((pod) => (pod.uid === action.uid ? { ...pod, deleting: true } : pod));
        return;
      case 'requestSlot':
        this.slot = { state: 'granted' };
        return;
      case 'releaseSlot':
        this.slot = { state: 'none' };
        return;
      case 'stopSession':
        this.stop = { podUid: action.podUid, state: 'stopped', askedAgoMs: 0 };
        return;
      case 'reportPodGone':
        this.reportedGone.push(action.podUid);
        return;
      case 'closeSession':
        this.closed = true;
        return;
      case 'deleteSession':
        return this.delete();
      case 'ensureServiceAccount':
      case 'noteDue':
      case 'forgetDue':
        return;
    }
  }

  #next(): string {
    this.#version += 1;
    return String(this.#version);
  }

  #stored(object: KubeObject): KubeObject {
    const n = this.#next();
    const uid = `d0000000-0000-4000-8000-${n.padStart(12, '0')}`;
    const creationTimestamp = at((this.now - NOON_MS) / 1_000);
    return { ...object, metadata: { ...object.metadata, uid, resourceVersion: n, creationTimestamp } };
  }

  #setFinalizers(finalizers: string[]): void {
    if (this.session === undefined) return;
    const gone = finalizers.length === 0 && this.session.metadata.deletionTimestamp !== undefined;
    const metadata = { ...this.session.metadata, finalizers, resourceVersion: this.#next() };
    this.session = gone ? undefined : { ...this.session, metadata };
  }

  #writeStatus(status: SessionStatus): boolean {
    if (this.session === undefined || sessionStatusChange(this.session.status, status) === 'none') return false;
    this.counts.statusWrites += 1;
    // Through JSON and zod, as the API server and the cache do.
    this.session = SessionKind.object.parse(JSON.parse(JSON.stringify({ ...this.session, status })));
    return true;
  }
}
