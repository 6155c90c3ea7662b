// The claim over made-up ports and a clock that is moved by hand: assignment, waiting, refusal, the answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConflictError } from '#base/errors.ts';
import { ProjectKind } from '#schema/resources/project.ts';
import { SessionKind } from '#schema/resources/session.ts';
import type { ClaimRequest } from '#schema/wire/claim.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { CLAIM_HOLD_MS, makeClaim } from './claims.ts';
import type { ClaimSettings } from './ports.ts';
import type { StoredClaim } from './session-records.ts';
import { makeWaker } from './waker.ts';

const UID = '11111111-2222-3333-4444-555555555555';
const POD_UID = '99999999-2222-3333-4444-555555555555';
const metadata = { namespace: 'team', resourceVersion: '1', creationTimestamp: '2026-11-30T12:00:00Z' };

const aSession = (changes: { spec?: Record<string, unknown>; deletionTimestamp?: string } = {}) =>
  SessionKind.object.parse({
    apiVersion: SessionKind.apiVersion,
    kind: 'Session',
    metadata: { ...metadata, name: 'fix', uid: UID, deletionTimestamp: changes.deletionTimestamp },
    spec: { projectRef: { name: 'shop' }, ...changes.spec },
    status: { harness: { id: 'opencode', reason: 'default' }, pod: { name: 'fix-11111-1', uid: POD_UID, attempt: 1 } },
  });

const project = ProjectKind.object.parse({
  apiVersion: ProjectKind.apiVersion,
  kind: 'Project',
  metadata: { ...metadata, name: 'shop', uid: 'project-uid' },
  spec: { repository: { url: 'https://git.example.com/shop.git' } },
});

const settings: ClaimSettings = {
  baseBranch: 'main',
  baseCommit: 'a'.repeat(40),
  agents: [],
  agent: 'build',
  model: null,
  models: [],
  author: { name: 'Beeuni', email: 'beeuni@example.com' },
  env: { TOKEN: 'secret' },
  envRevision: 3,
  maxModelRequestBytes: 1_000,
  beeuniTools: ['memory'],
  projectTools: [{ name: 'deploy', path: 'tools/deploy.ts' }],
  configDirs: { opencode: 'conf/oc', pi: null },
};

const caller = {
  kind: 'pod',
  namespace: 'team',
  podName: 'fix-11111-1',
  podUid: POD_UID,
  serviceAccount: 'beeuni-sandbox',
} as const;
const request: ClaimRequest = { daemonVersion: '1', harness: 'opencode', adapters: ['opencode'] };
const never = new AbortController().signal;

const bench = (session = aSession()) => {
  const clock = manualClock();
  const waker = makeWaker(clock);
  const state = {
    session: session as ReturnType<typeof aSession> | undefined,
    isSynced: true,
    stored: { generation: 2, headSeq: 7, previous: { generation: 1, acknowledgedN: 4 } } as StoredClaim | undefined,
    claims: 0,
    forgotten: [] as string[],
  };
  const claim = makeClaim({
    findSessionByPodUid: (podUid) => (podUid === POD_UID ? state.session : undefined),
    findProject: () => project,
    claimConfig: async () => (state.isSynced ? settings : { wait: 'project_not_synced' }),
    keyOf: ({ metadata: { uid, namespace, name } }) => ({ uid, namespace, name, projectUid: '' }),
    storeClaim: async () => {
      state.claims += 1;
      return state.stored;
    },
    newCredential: () => ({ text: 'bs_x', stored: { prefix: 'x', hash: Buffer.from('x') } }),
    newDaemonCredential: () => 'bd_x',
    sealDaemonCredential: (text) => Buffer.from(text),
    waker,
    clock,
    gitPath: () => '/git',
    gatewayPath: '/gateway',
    onClaimed: (uid) => state.forgotten.push(uid),
  });
  return { claim, clock, waker, state };
};

test('D6 the pod that status.pod names becomes the daemon of its session', async () => {
  const { claim, state } = bench();
  const answer = await claim(caller, request, never);
  assert.ok(answer.state === 'claimed');
  assert.deepEqual(answer.session, { namespace: 'team', name: 'fix', uid: UID });
  assert.deepEqual([answer.generation, answer.headSeq, answer.previous], [2, 7, { generation: 1, acknowledgedN: 4 }]);
  assert.equal(answer.branch, 'beeuni/fix-11111');
  assert.deepEqual([answer.baseBranch, answer.project.uid, answer.env], ['main', 'project-uid', { TOKEN: 'secret' }]);
  assert.deepEqual([answer.credential, answer.daemonCredential], ['bs_x', 'bd_x']);
  assert.equal(answer.unattended, false);
  assert.deepEqual(state.forgotten, [UID]);
});

test('A103 hands on the tools that are loaded and the folders of the harnesses', async () => {
  const answer = await bench().claim(caller, request, never);
  assert.ok(answer.state === 'claimed');
  assert.deepEqual(
    [answer.beeuniTools, answer.projectTools, answer.configDirs],
    [['memory'], [{ name: 'deploy', path: 'tools/deploy.ts' }], { opencode: 'conf/oc', pi: null }],
  );
});

test('a Task, and a session that no user started, are unattended; branches of the spec win', async () => {
  const branch = { name: 'mine', base: 'develop' };
  const { claim } = bench(aSession({ spec: { mode: 'Task', prompt: 'do it', branch } }));
  const answer = await claim(caller, request, never);
  assert.ok(answer.state === 'claimed');
  assert.deepEqual([answer.unattended, answer.branch, answer.baseBranch], [true, 'mine', 'develop']);
});

test('10-kubernetes §8 a pod without a session is held until the binding appears', async () => {
  const { claim, clock, waker, state } = bench();
  state.session = undefined;
  const answer = claim(caller, request, never);
  await clock.advance(10_000);
  assert.equal(state.claims, 0);
  state.session = aSession();
  waker.wake(POD_UID);
  assert.equal((await answer).state, 'claimed');
  assert.equal(clock.pending(), 0);
});

test('a claim is held for 25 s at most, then told to ask again and why', async () => {
  const { claim, clock, state } = bench();
  state.isSynced = false;
  const answer = claim(caller, request, never);
  await clock.advance(CLAIM_HOLD_MS);
  assert.deepEqual(await answer, { state: 'wait', reason: 'project_not_synced' });
  state.session = undefined;
  const other = claim(caller, request, never);
  await clock.advance(CLAIM_HOLD_MS);
  assert.deepEqual(await other, { state: 'wait', reason: 'not_assigned' });
  assert.equal(clock.pending(), 0);
});

test('a project that is synced meanwhile lets the claim go on', async () => {
  const { claim, waker, state } = bench();
  state.isSynced = false;
  const answer = claim(caller, request, never);
  await new Promise((resolve) => setImmediate(resolve));
  state.isSynced = true;
  waker.wake('project-uid');
  assert.equal((await answer).state, 'claimed');
});

test('a daemon that leaves ends its claim at once', async () => {
  const { claim, clock, state } = bench();
  state.isSynced = false;
  const controller = new AbortController();
  const answer = claim(caller, request, controller.signal);
  await new Promise((resolve) => setImmediate(resolve));
  controller.abort();
  assert.equal((await answer).state, 'wait');
  assert.equal(clock.pending(), 0);
});

test('a claim that names another harness than the pod was made for is refused; a warm pod names none', async () => {
  const { claim, state } = bench();
  await assert.rejects(claim(caller, { ...request, harness: 'pi' }, never), (error: unknown) => {
    return error instanceof ConflictError && error.code === 'harness_mismatch';
  });
  assert.equal(state.claims, 0);
  const { harness: _none, ...warm } = request;
  assert.equal((await claim(caller, warm, never)).state, 'claimed');
});

test('a pod of another namespace or name, a session that is being deleted or closed: no claim', async () => {
  const { claim, clock, state } = bench();
  for (const other of [
    { ...caller, namespace: 'other' },
    { ...caller, podName: 'other' },
  ]) {
    const answer = claim(other, request, never);
    await clock.advance(CLAIM_HOLD_MS);
    assert.deepEqual(await answer, { state: 'wait', reason: 'not_assigned' });
  }
  state.session = aSession({ deletionTimestamp: '2026-11-30T12:00:01Z' });
  const deleted = claim(caller, request, never);
  await clock.advance(CLAIM_HOLD_MS);
  assert.equal((await deleted).state, 'wait');
  assert.equal(state.claims, 0);
  state.session = aSession();
  state.stored = undefined;
  await assert.rejects(claim(caller, request, never), { code: 'superseded' });
});
