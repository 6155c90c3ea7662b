// The session controller's plans: each named state printed, worlds that converge, crashes anywhere.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FINALIZERS } from '#kube/names.ts';
import type { SessionSpecInput, SessionStatus } from '#schema/resources/session.ts';
import { controllerSuite } from '#test/support/controller-suite.ts';
import {
  aHealth,
  aNewPod,
  aPod,
  aProject,
  aSession,
  aSessionFact,
  at,
  NOON_MS,
  observed,
  podUid,
} from '#test/support/session-fixtures.ts';
import { SessionWorld } from '#test/support/session-world.ts';
import type { ObservedPod, ObservedSession } from './observed.ts';
import { planSession, sessionFailure } from './plan.ts';

const FINALIZER = [FINALIZERS.session];

/** The status that the controller itself writes for a running Session, and what is observed then. */
const running = (spec: Partial<SessionSpecInput> = {}, changes: Partial<ObservedSession> = {}): ObservedSession => {
  const world = new SessionWorld(spec);
  world.settle();
  const o = world.observe() ?? assert.fail('the Session is gone');
  return { ...o, ...changes };
};

const withStatus = (o: ObservedSession, status: Partial<SessionStatus>): ObservedSession => ({
  ...o,
  session: { ...o.session, status: { ...o.session.status, ...status } },
});

const withSpec = (o: ObservedSession, spec: Partial<SessionSpecInput>): ObservedSession => {
  const session = aSession(
    { ...(o.session.spec as SessionSpecInput), ...spec },
    { ...(o.session.status === undefined ? {} : { status: o.session.status }), generation: 2, finalizers: FINALIZER },
  );
  return { ...o, session };
};

const withPod = (o: ObservedSession, changes: Partial<ObservedPod>): ObservedSession => ({
  ...o,
  pods: o.pods.map((pod) => ({ ...pod, ...changes })),
});

const sign = (reason: string, message = '', status = 'True') => ({ status, reason, message, sinceMs: NOON_MS });

/** A Session after its pod was deleted on request, with what the world wrote. */
const suspended = (): ObservedSession => {
  const world = new SessionWorld();
  world.settle();
  world.edit({ operatingMode: 'Suspended' });
  world.settle();
  return world.observe() ?? assert.fail('the Session is gone');
};

const deleting = (o: ObservedSession, since: string = at(0)): ObservedSession => {
  const { status } = o.session;
  const changes = { generation: 2, finalizers: FINALIZER, deletingSince: since };
  return { ...o, session: aSession({}, status === undefined ? changes : { ...changes, status }) };
};

controllerSuite<ObservedSession>({
  name: 'session',
  plan: planSession,
  states: {
    'new, no place yet': () => observed(),
    'new, place granted': () => observed({ slot: { state: 'granted' } }),
    'new, no place free': () => observed({ slot: { state: 'waiting', because: 'ProjectRunning' } }),
    'new, control plane connecting': () =>
      observed({ controlPlane: { state: 'connecting', lastContactMs: undefined }, projectFact: undefined }),
    'new, control plane down': () =>
      observed({ controlPlane: { state: 'down', lastContactMs: NOON_MS - 40_000 }, projectFact: undefined }),
    'refused, no project': () => observed({ project: undefined, projectFact: undefined }),
    'refused, project not synced': () => observed({ projectFact: undefined }),
    'refused, unknown agent': () => observed({ session: aSession({ agent: 'painter' }) }),
    'refused, unknown model': () => observed({ session: aSession({ model: 'acme/coder-lrage' }) }),
    'refused, branch of another session': () =>
      observed({ session: aSession({ branch: { name: 'feature' } }), branchHeldBy: 'first' }),
    'refused, base branch': () => observed({ session: aSession({ branch: { name: 'main' } }) }),
    'registry not read yet': () => observed({ registry: undefined }),
    'refused, resources above the ceiling': () =>
      observed({
        session: aSession({ sandbox: { resources: { limits: { memory: '16Gi' } } } }),
        project: aProject({ sandbox: { maxResources: { memory: '8Gi' } } }),
      }),
    'refused, too many sessions': () => observed({ unfinishedBefore: 100 }),
    'started, pod not scheduled': () => ({ ...running(), pods: [aNewPod(2)] }),
    running: () => running(),
    'running, control plane down': () =>
      running({}, { controlPlane: { state: 'down', lastContactMs: NOON_MS - 40_000 } }),
    'running, daemon silent': () => {
      const o = running();
      const { fact } = o;
      return {
        ...o,
        fact: fact && { ...fact, health: aHealth({ ...fact.health, state: 'Silent', lastAnswerAt: at(-31) }) },
      };
    },
    'running, operator just started': () =>
      running(
        {},
        {
          controlPlane: { state: 'connecting', lastContactMs: undefined },
          fact: undefined,
          registry: undefined,
          projectFact: undefined,
        },
      ),
    'running, project outdated it': () => running({}, { project: aProject({ sandbox: { image: 'other:2' } }) }),
    'running, node does not answer': () => withPod(running(), { ready: sign('', '', 'False') }),
    'pod lost without a sign': () => ({ ...running(), pods: [] }),
    'pod drained': () =>
      withPod(running(), { deleting: true, disruption: sign('EvictionByEvictionAPI', 'Eviction API: evicting') }),
    'daemon out of memory': () =>
      withPod(running(), {
        phase: 'Failed',
        container: { state: 'terminated', exitCode: 137, reason: 'OOMKilled', message: '' },
      }),
    'daemon could not boot the harness': () =>
      withPod(withStatus(running(), { readyAt: undefined }), {
        phase: 'Failed',
        container: {
          state: 'terminated',
          exitCode: 4,
          reason: 'Error',
          message: 'harness_not_available: this image has no adapter for pi',
        },
      }),
    'fifth failure': () =>
      withPod(
        withStatus(running(), {
          failure: { category: 'OOMKilled', message: 'm', retryable: true, attempts: 4, since: at(-900) },
        }),
        { phase: 'Failed', container: { state: 'terminated', exitCode: 1, reason: 'Error', message: '' } },
      ),
    'cooling down': () => {
      const o = running();
      const failure = {
        category: 'OOMKilled' as const,
        message: 'the sandbox used more memory than its limit',
        retryable: true,
        attempts: 1,
        since: at(-30),
        nextRetryTime: at(90),
      };
      return { ...withStatus(o, { failure, pod: { attempt: 1 }, phase: 'Pending' }), pods: [], fact: undefined };
    },
    'image cannot be pulled at the deadline': () => {
      const o = withStatus(running(), { readyAt: undefined, startedAt: at(-301), phase: 'Starting' });
      return {
        ...withPod(o, {
          phase: 'Pending',
          ready: undefined,
          containersReady: false,
          container: { state: 'waiting', reason: 'ImagePullBackOff', message: 'Back-off pulling image "x:1"' },
        }),
        fact: undefined,
      };
    },
    'suspend asked': () => withSpec(running(), { operatingMode: 'Suspended' }),
    'suspend, stopping': () => withStatus(withSpec(running(), { operatingMode: 'Suspended' }), { phase: 'Stopping' }),
    'suspend, drained': () => {
      const o = withStatus(withSpec(running(), { operatingMode: 'Suspended' }), { phase: 'Stopping' });
      return { ...o, stop: { podUid: o.pods[0]?.uid ?? '', state: 'stopped', askedAgoMs: 100 } };
    },
    'suspend, control plane down': () =>
      withStatus(
        withSpec(running({}, { controlPlane: { state: 'down', lastContactMs: NOON_MS } }), {
          operatingMode: 'Suspended',
        }),
        { phase: 'Stopping' },
      ),
    suspended: () => suspended(),
    resumed: () => ({ ...withSpec(suspended(), { operatingMode: 'Running' }), slot: { state: 'granted' } }),
    'restart asked': () => withSpec(running(), { restartToken: 'now' }),
    'project suspended': () => running({}, { project: aProject({ operatingMode: 'Suspended' }) }),
    'task succeeded': () => {
      const o = running({ mode: 'Task', prompt: 'do it' });
      return { ...o, fact: o.fact && { ...o.fact, specPromptFinal: { outcome: 'Succeeded', message: null } } };
    },
    'task failed': () => {
      const o = running({ mode: 'Task', prompt: 'do it' });
      return {
        ...o,
        fact: o.fact && { ...o.fact, specPromptFinal: { outcome: 'Failed', message: 'the model refused' } },
      };
    },
    'lifetime over': () => withSpec(running(), { lifecycle: { maxLifetimeSeconds: 60 } }),
    'deleting, with its pod': () => deleting(running()),
    'deleting, pod gone': () => deleting({ ...running(), pods: [] }),
    'deleting, volume retained': () => {
      const o = deleting({ ...running(), pods: [] });
      return { ...o, volume: o.volume && { ...o.volume, retain: true } };
    },
    'deleting, control plane down': () =>
      deleting({ ...running({}, { controlPlane: { state: 'down', lastContactMs: NOON_MS } }), pods: [] }),
    'deleting, five minutes over': () => deleting(running(), at(-300)),
  },
  worlds: {
    'a start': () => {
      const world = new SessionWorld();
      return { world: world.model(), reached: () => assert.equal(world.session?.status?.phase, 'Running') };
    },
    'an Ephemeral start': () => {
      const world = new SessionWorld({ workspace: { type: 'Ephemeral' } });
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.session?.status?.phase, 'Running');
          assert.equal(world.volume, undefined);
        },
      };
    },
    'a suspend': () => {
      const world = new SessionWorld();
      world.settle();
      world.edit({ operatingMode: 'Suspended' });
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.session?.status?.phase, 'Suspended');
          assert.equal(world.pods.length, 0);
          assert.equal(world.session?.status?.failure, undefined, 'what was asked for is no failure');
        },
      };
    },
    'a resume': () => {
      const world = new SessionWorld();
      world.settle();
      world.edit({ operatingMode: 'Suspended' });
      world.settle();
      world.edit({ operatingMode: 'Running' });
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.session?.status?.phase, 'Running');
          assert.equal(world.podUids.length, 2);
        },
      };
    },
    'a restart': () => {
      const world = new SessionWorld();
      world.settle();
      world.edit({ restartToken: 'x' });
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.session?.status?.phase, 'Running');
          assert.equal(world.session?.status?.observedRestartToken, 'x');
          assert.equal(world.podUids.length, 2);
          assert.equal(world.session?.status?.failure, undefined);
        },
      };
    },
    'a Task that succeeds': () => {
      const world = new SessionWorld({ mode: 'Task', prompt: 'do it' });
      world.settle();
      world.fact = world.fact && { ...world.fact, specPromptFinal: { outcome: 'Succeeded', message: null } };
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.session?.status?.phase, 'Succeeded');
          assert.equal(world.pods.length, 0);
          assert.equal(world.podUids.length, 1);
        },
      };
    },
    'a failure that counts': () => {
      const world = new SessionWorld();
      world.settle();
      world.harm({
        phase: 'Failed',
        container: { state: 'terminated', exitCode: 137, reason: 'OOMKilled', message: '' },
      });
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.session?.status?.failure?.category, 'OOMKilled');
          assert.equal(world.session?.status?.failure?.attempts, 1);
          assert.equal(world.pods.length, 0);
        },
      };
    },
    'a disruption': () => {
      const world = new SessionWorld();
      world.settle();
      world.harm({ disruption: sign('PreemptionByScheduler') });
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.session?.status?.phase, 'Running');
          assert.equal(world.podUids.length, 2);
          assert.equal(world.session?.status?.failure?.attempts, 0);
        },
      };
    },
    'a delete': () => {
      const world = new SessionWorld();
      world.settle();
      world.delete();
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.session, undefined);
          assert.equal(world.pods.length, 0);
          assert.ok(world.closed, 'the control plane was not told');
        },
      };
    },
  },
});

test('§5 a normal start costs six writes, a suspend three, a resume three, a delete three', () => {
  const world = new SessionWorld();
  const cost = (act: () => void): number => {
    const before = world.counts.writes.length + world.counts.statusWrites;
    act();
    world.settle();
    return world.counts.writes.length + world.counts.statusWrites - before;
  };
  assert.equal(
    cost(() => {}),
    6,
  );
  assert.equal(
    cost(() => world.edit({ operatingMode: 'Suspended' })),
    3,
  );
  assert.equal(
    cost(() => world.edit({ operatingMode: 'Running' })),
    3,
  );
  assert.equal(
    cost(() => world.delete()),
    3,
  );
});

test('K14 the message about a silent daemon names a time, so that it does not change while the daemon is silent', () => {
  const silent = (now: number) => {
    const o = running();
    const fact = o.fact && { ...o.fact, health: aHealth({ ...o.fact.health, state: 'Silent', lastAnswerAt: at(-31) }) };
    return planSession({ ...o, fact, now }).status?.conditions?.map(({ message }) => message);
  };
  assert.deepEqual(silent(NOON_MS), silent(NOON_MS + 60_000));
});

test('J13 D16 a pod that runs is not Ready while its health says nothing, or is about another pod', () => {
  for (const fact of [undefined, aSessionFact(podUid(9))]) {
    const { status } = planSession(running({}, { fact }));
    assert.equal(status?.conditions?.[0]?.status, 'False');
  }
});

test('A5 J1 a flag that changed does not change the harness of a running Session', () => {
  const project = aProject({ features: { piHarness: 'Enabled' } });
  const { status, actions } = planSession(running({}, { project }));
  assert.equal(status?.harness?.id, 'opencode');
  assert.equal(status?.pod?.current, false);
  assert.deepEqual(actions, []);
});

test('J17 K15 no pod is planned while another of the Session is there, or while our own is not seen yet', () => {
  const base = observed({ slot: { state: 'granted' } });
  const leftover = { ...base, pods: [aPod(1, { deleting: true })] };
  const withOld = withStatus(leftover, { pod: { attempt: 1 } });
  const unseen = { ...running(), pods: [], unseen: { networkPolicy: false, volume: false, pod: true } };
  for (const o of [withOld, unseen]) {
    assert.ok(!planSession(o).actions.some(({ kind }) => kind === 'createPod'));
  }
});

test('K20 a TTL deletes only after two readings a minute apart, so that a clock that jumps deletes nothing', () => {
  const world = new SessionWorld({ mode: 'Task', prompt: 'x', lifecycle: { ttlSecondsAfterFinished: 100 } });
  world.settle();
  world.fact = world.fact && { ...world.fact, specPromptFinal: { outcome: 'Succeeded', message: null } };
  world.settle();
  const o = world.observe() ?? assert.fail('the Session is gone');
  const kinds = (changes: Partial<ObservedSession>) =>
    planSession({ ...o, ...changes }).actions.map(({ kind }) => kind);
  assert.deepEqual(kinds({ now: NOON_MS + 99_000 }), []);
  assert.deepEqual(kinds({ now: NOON_MS + 100_000 }), ['noteDue'], 'exactly at the boundary it is over');
  assert.deepEqual(kinds({ now: NOON_MS + 100_000, dueForDeletionMs: 59_999 }), []);
  assert.deepEqual(kinds({ now: NOON_MS + 160_000, dueForDeletionMs: 60_000 }), ['deleteSession']);
  assert.deepEqual(kinds({ now: NOON_MS, dueForDeletionMs: 60_000 }), ['forgetDue']);
});

test('a refusal of the API server becomes a failure that cools down, with its text', () => {
  const o = running({}, { pods: [] });
  const before = withStatus(o, { pod: { attempt: 1 } });
  const action = { kind: 'createPod', object: { metadata: { name: 'p' } } } as const;
  const answer = sessionFailure(before, action, 'forbidden', 'exceeded quota: pods');
  assert.equal(answer?.status.failure?.category, 'Rejected');
  assert.equal(answer.status.failure.message, 'exceeded quota: pods');
  assert.equal(answer.status.conditions?.[0]?.reason, 'CoolingDown');
  assert.equal(sessionFailure(before, action, 'api_server_unavailable', 'x'), undefined);
  assert.equal(sessionFailure(before, { kind: 'deletePod', name: 'p', uid: 'u' }, 'forbidden', 'x'), undefined);
});

test('a Session that is blocked after five failures starts again by a wake after the block, and not by itself', () => {
  const failure = {
    category: 'OOMKilled' as const,
    message: 'm',
    retryable: true,
    attempts: 5,
    since: at(-1_900),
    nextRetryTime: at(-100),
  };
  const o = withStatus({ ...running(), pods: [] }, { failure, pod: { attempt: 5 }, phase: 'Failed' });
  assert.equal(planSession({ ...o, fact: aSessionFact(null) }).status?.phase, 'Failed');
  const woken = planSession({ ...o, fact: aSessionFact(null, { wanted: true }) });
  assert.deepEqual(
    woken.actions.map(({ kind }) => kind),
    ['requestSlot'],
  );
  const early = withStatus(o, { failure: { ...failure, nextRetryTime: at(100) } });
  assert.equal(planSession({ ...early, fact: aSessionFact(null, { wanted: true }) }).status?.phase, 'Failed');
});

test('a Session that slept with its Project stays asleep until it is wanted', () => {
  const world = new SessionWorld();
  world.settle();
  world.project = aProject({ operatingMode: 'Suspended' });
  world.settle();
  assert.equal(world.session?.status?.suspension?.reason, 'ProjectSuspended');
  world.project = aProject();
  world.settle();
  assert.equal(world.session?.status?.phase, 'Suspended');
  assert.equal(world.session?.status?.suspension?.reason, 'Idle');
  world.fact = aSessionFact(null, { wanted: true, generation: 1 });
  world.settle();
  assert.equal(world.session?.status?.phase, 'Running');
});
