// The operator on a real API server: Projects (sync, conditions, deletion), and what a sandbox may be: the pod under Pod
// Security "restricted", the network policy in every egress mode.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { apply, mergePatch } from '#kube/apply.ts';
import {
  type KubeObject,
  NAMESPACES,
  NETWORK_POLICIES,
  PODS,
  PROJECTS,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '#kube/resource-types.ts';
import { chooseStart } from '#operator/session/choose-start.ts';
import { desiredNetworkPolicy, networkPolicyHash } from '#operator/session/desired-network-policy.ts';
import { desiredPod } from '#operator/session/desired-pod.ts';
import { readNetworkPolicy } from '#operator/session/read-pod.ts';
import type { ProjectSpecInput } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import { skipReason } from '#test/cluster/cluster.ts';
import { applyFile, startTestApi, type TestApi } from '#test/support/kube.ts';
import {
  type OperatorBench,
  type RunningOperator,
  startOperatorBench,
  writeLine,
} from '#test/support/operator-bench.ts';
import { anInstallation, aProject, aProjectFact, aSession } from '#test/support/session-fixtures.ts';
import { until } from '#test/support/until.ts';

const skip = skipReason('apiserver', 'integration');
const isReady = ({ status, metadata }: Session) =>
  status?.conditions?.[0]?.status === 'True' && status.conditions[0].observedGeneration === metadata.generation;
type Condition = { type: string; status: string; reason: string; message: string };
const conditionsOf = (project: KubeObject | undefined): Condition[] =>
  (project?.['status'] as { conditions?: Condition[] } | undefined)?.conditions ?? [];

describe('operator, projects', { skip }, () => {
  let api: TestApi;
  let bench: OperatorBench;
  let operator: RunningOperator;
  const ref = (name = 'shop') => ({ namespace: bench.namespace, name });

  before(async () => {
    api = await startTestApi();
    await applyFile(api.admin.client, 'crds/projects.yaml');
    await applyFile(api.admin.client, 'crds/sessions.yaml');
    bench = await startOperatorBench(api);
    operator = await bench.startOperator();
  });
  after(async () => {
    await bench?.stop();
    await api?.stop();
  });

  const untilCondition = (type: string, reason: string) =>
    until(
      `${type} says ${reason}`,
      async () => {
        const project = await api.admin.client.get(PROJECTS, ref());
        const condition = conditionsOf(project).find((each) => each.type === type);
        return condition?.reason === reason ? condition : undefined;
      },
      { describe: async () => conditionsOf(await api.admin.client.get(PROJECTS, ref())) },
    );

  test('a Project is synced with one call and written with three requests, and makes the service account', async () => {
    const mark = bench.mark();
    const project = await bench.project();
    assert.equal(conditionsOf(project)[0]?.reason, 'Ready');
    assert.deepEqual(bench.writesSince(mark).map(writeLine), [
      'apply projects',
      'create serviceaccounts',
      'apply projects/status',
    ]);
    assert.equal(bench.internal.callsOf('syncProject').length, 1);
    const account = await api.admin.client.get(SERVICE_ACCOUNTS, ref('beeuni-sandbox'));
    assert.equal(account?.['automountServiceAccountToken'], false);
  });

  test('a restart of the operator or of the control plane causes no sync and no write', async () => {
    await operator.stop();
    const mark = bench.mark();
    const calls = bench.internal.callsOf('syncProject').length;
    operator = await bench.startOperator();
    await until('facts are known', () => operator.logged.some((line) => line.includes('"state":"available"')));
    bench.internal.goDown();
    bench.internal.comeBack();
    // A change that must reach the status shows that everything before it was looked at.
    await mergePatch(api.admin.client, PROJECTS, ref(), { spec: { syncToken: 'now' } }, { manager: 'beeuni-test' });
    await until('the token is answered', async () => {
      const project = await api.admin.client.get(PROJECTS, ref());
      return (project?.['status'] as { observedSyncToken?: string } | undefined)?.observedSyncToken === 'now';
    });
    assert.deepEqual(bench.writesSince(mark).map(writeLine), ['apply projects/status']);
    assert.equal(bench.internal.callsOf('syncProject').length, calls + 1);
  });

  test('what the control plane says of the manifest becomes a condition, and heals', async () => {
    const uid = (await api.admin.client.get(PROJECTS, ref()))?.metadata.uid ?? '';
    const fact = bench.internal.fact(uid);
    assert.equal(fact?.kind, 'project');
    const errors = [{ path: 'beeuni.yaml', line: 4, column: 2, code: 'schema', message: 'agents must not be empty' }];
    bench.internal.raise({ ...fact, manifest: { ...fact.manifest, reason: 'SchemaError', errors } });
    const condition = await untilCondition('ManifestValid', 'SchemaError');
    assert.equal(condition.message, 'beeuni.yaml:4:2: agents must not be empty');
    assert.equal((await untilCondition('Ready', 'NotReady')).status, 'False');
    bench.internal.raise(fact);
    await untilCondition('Ready', 'Ready');
  });

  test('D10 a Secret that is rotated is told to the control plane, by its metadata alone', async () => {
    const { client } = api.admin;
    const name = 'git-credentials';
    const secret = { metadata: ref(name), stringData: { token: 'canary-one' } };
    await apply(client, SECRETS, secret, { manager: 'beeuni-test', force: true });
    await bench.project({ repository: { url: 'https://git.example.com/shop.git', credentialsSecretRef: { name } } });
    const reads = () => bench.proxy.calls.filter(({ resource, events }) => resource === 'secrets' && events >= 0);
    await until('Secrets are watched', () => reads().some(({ verb }) => verb === 'watch'));
    assert.equal(bench.internal.callsOf('secretChanged').length, 0);
    await mergePatch(client, SECRETS, ref(name), { stringData: { token: 'canary-two' } }, { manager: 'beeuni-test' });
    const [call] = await until('it was told', () => {
      const calls = bench.internal.callsOf('secretChanged');
      return calls.length > 0 ? calls : undefined;
    });
    assert.equal((call?.body as { secretName: string } | undefined)?.secretName, name);
    assert.ok(
      reads().every(({ verb }) => verb === 'list' || verb === 'watch'),
      'a Secret was read',
    );
    assert.ok(!operator.logged.some((line) => line.includes('canary')));
  });

  test('Block holds the deletion until the last Session is gone; new Sessions are refused', async () => {
    await bench.createSession('holder');
    await bench.untilSession('holder', 'is ready', isReady);
    const { uid } = (await api.admin.client.get(PROJECTS, ref()))?.metadata ?? {};
    await api.admin.client.delete(PROJECTS, ref(), { uid: uid ?? '' });
    const blocked = await untilCondition('Ready', 'DeletionBlocked');
    assert.match(blocked.message, /1 sessions and deletionPolicy Block/);
    await bench.createSession('late');
    const refused = await bench.untilSession(
      'late',
      'is refused',
      ({ status }) => status?.conditions?.[1]?.reason === 'ProjectDeleting',
    );
    assert.equal(refused.status?.conditions?.[0]?.reason, 'NotAccepted');
    assert.ok(isReady(await bench.untilSession('holder', 'goes on', isReady)));
    await bench.deleteSession('late');
    await bench.deleteSession('holder');
    await until('the Project is gone', async () => (await api.admin.client.get(PROJECTS, ref())) === undefined);
    assert.equal(bench.internal.callsOf('closeProject').length, 1);
    await until('the service account is gone', async () => {
      return (await api.admin.client.get(SERVICE_ACCOUNTS, ref('beeuni-sandbox'))) === undefined;
    });
  });

  test('Cascade deletes the Sessions and then the Project', async () => {
    await bench.project({ deletionPolicy: 'Cascade' });
    for (const name of ['one', 'two']) await bench.createSession(name);
    for (const name of ['one', 'two']) await bench.untilSession(name, 'is ready', isReady);
    const { uid } = (await api.admin.client.get(PROJECTS, ref()))?.metadata ?? {};
    await api.admin.client.delete(PROJECTS, ref(), { uid: uid ?? '' });
    await bench.untilGone('one');
    await bench.untilGone('two');
    await until('the Project is gone', async () => (await api.admin.client.get(PROJECTS, ref())) === undefined);
  });

  test('a Session without its Project says so, and starts when the Project comes', async () => {
    await bench.createSession('early');
    const waiting = await bench.untilSession(
      'early',
      'is refused',
      ({ status }) => status?.conditions?.[1]?.reason === 'ProjectNotFound',
    );
    assert.equal(waiting.status?.phase, 'Pending');
    await bench.project();
    await bench.untilSession('early', 'is ready', isReady);
  });

  test('§7 the pod as it is rendered passes Pod Security "restricted", for each harness and workspace', async () => {
    const name = `restricted-${bench.namespace}`;
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    const { client } = api.admin;
    await client.create(NAMESPACES, { metadata: { name, labels } }, { manager: 'beeuni-test' });
    const installation = anInstallation({ caBundle: { configMap: 'ca' } });
    let n = 0;
    for (const runtime of ['opencode', 'pi', 'beaver']) {
      for (const type of ['Persistent', 'Ephemeral'] as const) {
        const session = aSession({ workspace: { type } });
        const project = aProject();
        const projectFact = aProjectFact({}, { runtime });
        const choice = chooseStart({ session, project, projectFact, volume: undefined, installation });
        assert.equal(choice?.harness.id, runtime);
        n += 1;
        const pod = desiredPod({ session, project, choice, installation, version: '0.1.0' }, n);
        const { ownerReferences: _none, ...metadata } = pod.metadata;
        await client.create(PODS, { ...pod, metadata: { ...metadata, namespace: name } }, { manager: 'beeuni-test' });
      }
    }
    const bad = { metadata: { namespace: name, name: 'bad' }, spec: { containers: [{ name: 'a', image: 'b' }] } };
    await assert.rejects(client.create(PODS, bad, { manager: 'beeuni-test' }), /PodSecurity/);
  });

  test('K21 the server takes the network policy of every egress mode and stores it as it was rendered', async () => {
    const allow = [
      { cidr: '203.0.113.0/24', ports: [{ port: 443 }, { port: 53, protocol: 'UDP' as const }] },
      { cidr: '10.20.0.0/16', ports: [{ port: 5432 }] },
      { cidr: '2001:db8::/32', ports: [{ port: 22 }] },
    ];
    const installation = anInstallation({
      sandbox: {
        image: 'x',
        network: { allowedPrivateCidrs: ['10.20.0.0/16'], extraBlockedCidrs: ['10.20.30.0/24', '203.0.113.128/25'] },
      },
    });
    const modes: Record<string, ProjectSpecInput['egress']> = {
      restricted: { mode: 'Restricted' },
      allowlist: { mode: 'AllowList', allow },
      public: { mode: 'Public' },
      both: { mode: 'Public', allow },
    };
    for (const [name, egress] of Object.entries(modes)) {
      const inputs = { session: aSession(), egress: aProject({ egress }).spec.egress, installation, version: '0.1.0' };
      const policy = desiredNetworkPolicy(inputs);
      const { ownerReferences: _none, ...rest } = policy.metadata;
      const metadata = { ...rest, namespace: bench.namespace, name };
      const stored = await apply(
        api.admin.client,
        NETWORK_POLICIES,
        { ...policy, metadata },
        { manager: 'beeuni-test', force: true },
      );
      assert.equal(readNetworkPolicy(stored).contentHash, networkPolicyHash(inputs), name);
      assert.equal(readNetworkPolicy(stored).wantedHash, networkPolicyHash(inputs), name);
    }
  });
});
