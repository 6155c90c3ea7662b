// The operator on a real API server: a Session from creation to its end, what it writes, and what it leaves behind.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { mergePatch } from '#kube/apply.ts';
import { childName, podName } from '#kube/names.ts';
import { NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS, PODS, SESSIONS } from '#kube/resource-types.ts';
import type { Session } from '#schema/resources/session.ts';
import { skipReason } from '#test/cluster/cluster.ts';
import { applyFile, startTestApi, type TestApi } from '#test/support/kube.ts';
import {
  type OperatorBench,
  type RunningOperator,
  startOperatorBench,
  writeLine,
} from '#test/support/operator-bench.ts';
import { until } from '#test/support/until.ts';

const skip = skipReason('apiserver', 'integration');
const conditionOf = ({ status }: Session, type: string) => status?.conditions?.find((entry) => entry.type === type);
const isReady = (session: Session) =>
  conditionOf(session, 'Ready')?.status === 'True' &&
  conditionOf(session, 'Ready')?.observedGeneration === session.metadata.generation;
const inPhase = (phase: string) => (session: Session) => session.status?.phase === phase;
const KINDS = [PODS, NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS];

describe('operator, sessions', { skip }, () => {
  let api: TestApi;
  let bench: OperatorBench;
  let operator: RunningOperator;

  before(async () => {
    api = await startTestApi();
    await applyFile(api.admin.client, 'crds/projects.yaml');
    await applyFile(api.admin.client, 'crds/sessions.yaml');
    bench = await startOperatorBench(api);
    operator = await bench.startOperator();
    await bench.project();
  });
  after(async () => {
    await bench?.stop();
    await api?.stop();
  });

  /** Writes to one Session and its children, in order. */
  const writesOf = (session: string, mark: number) =>
    bench
      .writesSince(mark)
      .filter(({ name, body }) => {
        const made = (body as { metadata?: { name?: string } } | undefined)?.metadata?.name ?? '';
        return [name, made].some((each) => each === session || each.startsWith(`${session}-`));
      })
      .map(writeLine);
  const ready = async (name: string, spec?: Readonly<Record<string, unknown>>) => {
    await bench.createSession(name, spec);
    return bench.untilSession(name, 'is ready', isReady);
  };
  const childrenOf = async ({ metadata }: Session) => {
    const all = await Promise.all(KINDS.map((kind) => api.admin.client.list(kind, { namespace: bench.namespace })));
    return (
      all
        .flatMap(({ items }) => items)
        .filter((child) => child.metadata.labels?.['beeuni.dev/session-uid'] === metadata.uid)
        // A claim waits for a controller of real clusters, which takes its finalizer off.
        .filter((child) => child.metadata.deletionTimestamp === undefined)
        .map((child) => child.metadata.name)
    );
  };
  const policyOf = ({ metadata }: Session) =>
    api.admin.client.get(NETWORK_POLICIES, {
      namespace: bench.namespace,
      name: childName(metadata.name, metadata.uid),
    });

  test('a Session that is created becomes Ready with exactly six writes', async () => {
    const mark = bench.mark();
    const session = await ready('six');
    assert.deepEqual(writesOf('six', mark).sort(), [
      'apply sessions',
      'apply sessions/status',
      'apply sessions/status',
      'create networkpolicies',
      'create persistentvolumeclaims',
      'create pods',
    ]);
    assert.equal(session.status?.phase, 'Running');
    assert.equal(session.status.harness?.id, 'opencode');
    assert.equal(session.status.pod?.name, podName('six', session.metadata.uid, 1));
    assert.equal(session.status.pod.current, true);
  });

  test('an Ephemeral Session becomes Ready with five writes and has no volume', async () => {
    const mark = bench.mark();
    const session = await ready('short', { workspace: { type: 'Ephemeral', size: '1Gi' } });
    assert.equal(writesOf('short', mark).length, 5);
    assert.deepEqual((await childrenOf(session)).length, 2);
  });

  test('a suspend costs three writes and keeps the volume, a resume costs three and keeps the files', async () => {
    const session = await ready('sleeper');
    let mark = bench.mark();
    await bench.patchSession('sleeper', { operatingMode: 'Suspended' });
    const asleep = await bench.untilSession('sleeper', 'is suspended', inPhase('Suspended'));
    assert.deepEqual(writesOf('sleeper', mark), ['apply sessions/status', 'delete pods', 'apply sessions/status']);
    assert.equal(asleep.status?.suspension?.reason, 'Requested');
    assert.equal(conditionOf(asleep, 'Suspended')?.reason, 'Requested');
    const stops = bench.internal.callsOf('stopSession').filter(({ uid }) => uid === session.metadata.uid);
    assert.deepEqual(
      stops.map(({ body }) => (body as { turn: string }).turn),
      ['abort'],
    );
    const gone = bench.internal.callsOf('podGone').filter(({ uid }) => uid === session.metadata.uid);
    assert.deepEqual(
      gone.map(({ body }) => (body as { podUid: string }).podUid),
      [session.status?.pod?.uid],
    );

    mark = bench.mark();
    await bench.patchSession('sleeper', { operatingMode: 'Running' });
    const awake = await bench.untilSession('sleeper', 'is ready again', isReady);
    assert.deepEqual(writesOf('sleeper', mark), ['create pods', 'apply sessions/status', 'apply sessions/status']);
    assert.equal(awake.status?.pod?.attempt, 2);
    assert.equal(awake.status.workspace?.claimName, session.status?.workspace?.claimName);
  });

  test('a changed restart token replaces the pod, after the turn had its time', async () => {
    const before = await ready('again');
    await bench.patchSession('again', { restartToken: 'r1' });
    const after = await bench.untilSession(
      'again',
      'is ready in its second attempt',
      (session) => isReady(session) && session.status?.pod?.attempt === 2,
    );
    assert.notEqual(after.status?.pod?.uid, before.status?.pod?.uid);
    assert.equal(after.status?.observedRestartToken, 'r1');
    const [stop] = bench.internal.callsOf('stopSession').filter(({ uid }) => uid === before.metadata.uid);
    assert.equal((stop?.body as { turn: string } | undefined)?.turn, 'wait');
  });

  test('A5 J1 a flag that changes while a Session runs reaches it at its next start only', async () => {
    await ready('flagged');
    await bench.project({ features: { piHarness: 'Enabled' } });
    const still = await bench.untilSession(
      'flagged',
      'says that its pod is outdated',
      ({ status }) => status?.pod?.current === false,
    );
    assert.equal(still.status?.harness?.id, 'opencode');
    assert.ok(isReady(still));
    await bench.patchSession('flagged', { restartToken: 'now' });
    const after = await bench.untilSession(
      'flagged',
      'runs pi',
      (session) => isReady(session) && session.status?.harness?.id === 'pi',
    );
    assert.equal(after.status?.harness?.reason, 'project-flag');
    await bench.project({ features: { piHarness: 'Disabled' } });
  });

  test('K21 a network policy that is deleted or edited by hand is restored at once', async () => {
    const session = await ready('guarded');
    const { client } = api.admin;
    const first = await policyOf(session);
    assert.ok(first?.metadata.uid);
    await client.delete(NETWORK_POLICIES, first.metadata, { uid: first.metadata.uid });
    const second = await until('the policy is back', async () => {
      const found = await policyOf(session);
      return found !== undefined && found.metadata.uid !== first.metadata.uid ? found : undefined;
    });
    assert.deepEqual(second['spec'], first['spec']);
    await mergePatch(client, NETWORK_POLICIES, second.metadata, { spec: { egress: [{}] } }, { manager: 'somebody' });
    await until('the edit is undone', async () => {
      const found = await policyOf(session);
      return JSON.stringify(found?.['spec']) === JSON.stringify(first['spec']);
    });
    assert.ok(isReady(await bench.untilSession('guarded', 'is still ready', isReady)));
  });

  test('a sandbox that was killed for its memory cools down, names the cause, and starts again on a restart token', async () => {
    const session = await ready('hungry');
    const pod = bench.node.pods().find(({ metadata }) => metadata.uid === session.status?.pod?.uid);
    assert.ok(pod);
    await bench.node.end(pod, { exitCode: 137, reason: 'OOMKilled' });
    const cooling = await bench.untilSession(
      'hungry',
      'cools down',
      (s) => conditionOf(s, 'Ready')?.reason === 'CoolingDown',
    );
    assert.equal(cooling.status?.failure?.category, 'OOMKilled');
    assert.equal(cooling.status.failure.attempts, 1);
    await until('the failed pod is removed', async () => (await childrenOf(session)).length === 2);
    await bench.patchSession('hungry', { restartToken: 'more' });
    const after = await bench.untilSession('hungry', 'is ready again', isReady);
    assert.equal(after.status?.failure, undefined);
    assert.equal(after.status?.pod?.attempt, 2);
  });

  test('a sandbox whose node is drained is started again at once and does not count as a failure', async () => {
    const session = await ready('drained');
    const pod = bench.node.pods().find(({ metadata }) => metadata.uid === session.status?.pod?.uid);
    assert.ok(pod);
    const conditions = [
      { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'drain' },
    ];
    await bench.node.setStatus(pod, { conditions });
    await api.admin.client.delete(PODS, pod.metadata, { uid: pod.metadata.uid ?? '' });
    const after = await bench.untilSession(
      'drained',
      'is ready again',
      (s) => isReady(s) && s.status?.pod?.attempt === 2,
    );
    assert.equal(conditionOf(after, 'Disrupted')?.reason, 'NotDisrupted');
    assert.equal(after.status?.failure?.attempts, 0);
    assert.equal(after.status.failure.category, 'Drained');
  });

  test('a Task ends with the turn of its prompt', async () => {
    for (const [name, outcome, phase] of [
      ['good', 'Succeeded', 'Succeeded'],
      ['bad', 'Failed', 'Failed'],
    ] as const) {
      const session = await ready(name, { mode: 'Task', prompt: 'do it' });
      bench.raise(session.metadata.uid, { specPromptFinal: { outcome, message: null } });
      const ended = await bench.untilSession(name, `is ${phase}`, inPhase(phase));
      assert.equal(conditionOf(ended, 'Finished')?.status, 'True');
      assert.equal(conditionOf(ended, 'Finished')?.reason, phase);
      assert.equal(ended.status?.failure?.category, outcome === 'Failed' ? 'TurnFailed' : undefined);
      assert.ok(ended.status?.finishedAt);
      assert.ok(!(await childrenOf(session)).includes(session.status?.pod?.name ?? ''));
    }
  });

  test('a finished Task with a TTL of 0 deletes itself', async () => {
    const spec = { mode: 'Task', prompt: 'once', lifecycle: { ttlSecondsAfterFinished: 0 } };
    const session = await ready('fleeting', spec);
    bench.raise(session.metadata.uid, { specPromptFinal: { outcome: 'Succeeded', message: null } });
    await bench.untilGone('fleeting');
  });

  test('K22 a foreign pod with our name is left alone, and the Session says NameTaken', async () => {
    bench.internal.goDown();
    const session = await bench.createSession('squatted');
    const { client } = api.admin;
    const name = podName('squatted', session.metadata.uid, 1);
    const spec = { containers: [{ name: 'a', image: 'b' }] };
    const foreign = await client.create(
      PODS,
      { metadata: { namespace: bench.namespace, name }, spec },
      { manager: 'somebody' },
    );
    bench.internal.comeBack();
    const refused = await bench.untilSession(
      'squatted',
      'says NameTaken',
      (s) => s.status?.failure?.category === 'NameTaken',
    );
    assert.equal(conditionOf(refused, 'SandboxReady')?.reason, 'NameTaken');
    assert.equal(conditionOf(refused, 'Ready')?.reason, 'CoolingDown');
    const still = await client.get(PODS, { namespace: bench.namespace, name });
    assert.equal(still?.metadata.uid, foreign.metadata.uid);
  });

  test('a delete costs three writes and leaves nothing of the Session', async () => {
    const session = await ready('doomed');
    assert.equal((await childrenOf(session)).length, 3);
    const mark = bench.mark();
    await bench.deleteSession('doomed');
    await bench.untilGone('doomed');
    assert.deepEqual(writesOf('doomed', mark).sort(), ['apply sessions', 'apply sessions/status', 'delete pods']);
    assert.equal(bench.internal.callsOf('closeSession').filter(({ uid }) => uid === session.metadata.uid).length, 1);
    // The collector learns of a new kind of owner within a minute.
    await until('garbage collection took the children', async () => (await childrenOf(session)).length === 0, {
      deadlineMs: 90_000,
    });
  });

  test('a retained volume outlives its Session and says so', async () => {
    const session = await ready('kept', { workspace: { type: 'Persistent', reclaimPolicy: 'Retain' } });
    await bench.deleteSession('kept');
    await bench.untilGone('kept');
    const name = childName('kept', session.metadata.uid);
    const claim = await api.admin.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace: bench.namespace, name });
    assert.equal(claim?.metadata.labels?.['beeuni.dev/retained'], 'true');
    assert.equal(claim.metadata.deletionTimestamp, undefined);
  });

  test('K24 a Session that is created again under the same name inherits nothing', async () => {
    const first = await ready('twin');
    await bench.deleteSession('twin');
    await bench.untilGone('twin');
    const second = await ready('twin');
    assert.notEqual(second.metadata.uid, first.metadata.uid);
    assert.equal(second.status?.pod?.attempt, 1);
    assert.notEqual(second.status.pod.uid, first.status?.pod?.uid);
    assert.notEqual(second.status.workspace?.claimName, first.status?.workspace?.claimName);
    assert.equal(second.status.generation, 1);
  });

  test('a restart of the operator writes nothing, and no request ever conflicted', async () => {
    await bench.untilSession('six', 'is ready', isReady);
    const conflicts = bench.proxy.calls.filter(({ serverStatus }) => serverStatus === 409);
    assert.deepEqual(
      conflicts.map((call) => `${writeLine(call)} ${call.name}`),
      ['create pods '],
      'only the foreign pod conflicts',
    );
    await operator.stop();
    const mark = bench.mark();
    const { items } = await api.admin.client.list(SESSIONS, { namespace: bench.namespace });
    operator = await bench.startOperator();
    const waiting = items.filter((item) => (item['status'] as { failure?: unknown }).failure !== undefined).length;
    await until('every Session was looked at', async () => (await operator.passes('done')) >= items.length - waiting);
    await until('facts are known', () => operator.logged.some((line) => line.includes('"state":"available"')));
    assert.deepEqual(bench.writesSince(mark).map(writeLine), []);
    const before = await operator.passes('done');
    assert.ok(bench.proxy.cutWatches('reset') > 0);
    await bench.patchSession('six', { model: 'acme/coder-large' });
    await bench.untilSession('six', 'answers its new generation', (s) => isReady(s) && s.metadata.generation === 2);
    await until('it was looked at', async () => (await operator.passes('done')) > before);
    assert.deepEqual(
      bench.writesSince(mark).map((call) => `${writeLine(call)} ${call.name}`),
      ['apply sessions/status six'],
    );
    assert.equal(await operator.conflicts(), 0);
  });
});
