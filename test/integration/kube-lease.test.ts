// Leader election on a real API server: hand-over, a leader that is killed, one that is frozen, one that is cut off.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { mergePatch } from '#kube/apply.ts';
import { Informer } from '#kube/informer.ts';
import { LeaderElection, type LeaseState, type LeaseTimes, leaseSelection, leaseState } from '#kube/lease.ts';
import { type KubeObject, LEASES, SERVICE_ACCOUNTS } from '#kube/resource-types.ts';
import { type FaultProxy, startFaultProxy } from '#test/support/fault-proxy.ts';
import { openTestClient, startTestApi, type TestApi } from '#test/support/kube.ts';
import { type ManualClock, manualClock } from '#test/support/manual-clock.ts';
import { until } from '#test/support/until.ts';

const PROGRAM = fileURLToPath(new URL('../support/lease-process.ts', import.meta.url));
/** Like those of the product, but short. */
const SHORT: LeaseTimes = { durationMs: 3_000, renewDeadlineMs: 2_000, retryMs: 400 };
let api: TestApi;

before(async () => {
  api = await startTestApi();
});
after(async () => api.stop());

const leaseOf = async (namespace: string): Promise<LeaseState | undefined> => {
  const object = await api.admin.client.get<KubeObject>(LEASES, { namespace, name: 'leader' });
  return object === undefined ? undefined : leaseState(object);
};

/** One stander on a manual clock, behind its own proxy. */
const stand = async (t: TestContext, namespace: string, identity: string, clock: ManualClock) => {
  // Each thing is closed from the moment it is there, the last one first.
  const opened = new AsyncDisposableStack();
  t.after(() => opened.disposeAsync());
  const proxy = await startFaultProxy({ kubeconfigPath: api.kubeconfigPath });
  opened.defer(proxy.stop);
  const { client, log, metrics, metric, logged } = await openTestClient(proxy.kubeconfigPath, {
    clock,
    random: () => 0,
  });
  opened.defer(client.close);
  const said: string[] = [];
  const lease = { namespace, name: 'leader' };
  const ports = { client, clock, random: () => 0, log, metrics };
  const informer = new Informer<LeaseState>(
    { type: LEASES, selection: leaseSelection(lease), project: leaseState },
    ports,
  );
  const election = new LeaderElection(
    { lease, identity, onAcquired: () => said.push('leading'), onLost: () => said.push('lost') },
    { ...ports, informer },
  );
  opened.defer(async () => {
    await election.release();
    await informer.stop();
  });
  informer.start();
  // A first list that failed is tried again when time has passed, and only the test makes it pass.
  await until('the lease is watched', async () => {
    if (!informer.hasSynced()) await clock.advance(100);
    return informer.hasSynced();
  });
  return { proxy, election, said, metric, logged, informer };
};

const quiet = (proxies: readonly FaultProxy[]): boolean =>
  proxies.every(({ calls }) => calls.every((call) => call.answered || call.verb === 'watch'));

/** Moves time second by second, letting answers arrive in between. */
const pass = async (clock: ManualClock, seconds: number, ...proxies: readonly FaultProxy[]): Promise<void> => {
  for (let second = 0; second < seconds * 2; second += 1) {
    await until('no request is on its way', () => quiet(proxies));
    await clock.advance(500);
  }
  await until('no request is on its way', () => quiet(proxies));
  await clock.advance(0);
};

test('K35 the first process leads and renews; the second stands by without a request of its own', async (t) => {
  const namespace = await api.namespace();
  const clock = manualClock();
  const one = await stand(t, namespace, 'one', clock);
  one.election.start();
  await until('one leads', () => one.said.includes('leading'));
  const two = await stand(t, namespace, 'two', clock);
  two.election.start();
  await pass(clock, 40, one.proxy, two.proxy);
  assert.deepEqual(two.said, []);
  assert.ok(one.election.surelyHeld());
  assert.equal(two.proxy.mutations().length, 0);
  const renewals = one.proxy.mutations().length - 1;
  assert.ok(renewals >= 15 && renewals <= 21, `${renewals} renewals in 40 s`);
  assert.equal(await one.metric('beeuni_leader'), 1);
  assert.equal(await two.metric('beeuni_leader'), 0);
});

test('K35 a released lease is taken at once, woken by the watch and not by a timer', async (t) => {
  const namespace = await api.namespace();
  const clock = manualClock();
  const one = await stand(t, namespace, 'one', clock);
  one.election.start();
  await until('one leads', () => one.said.includes('leading'));
  const two = await stand(t, namespace, 'two', clock);
  two.election.start();
  await pass(clock, 2, one.proxy, two.proxy);
  await one.election.release();
  assert.equal(one.election.surelyHeld(), false);
  // Time stands still here.
  await until('two leads', () => two.said.includes('leading'));
  assert.deepEqual(one.said, ['leading']);
  assert.equal((await leaseOf(namespace))?.holder, 'two');
  assert.equal((await leaseOf(namespace))?.transitions, 1);
});

test('K35 a leader that vanished costs at most the lease duration', async (t) => {
  const namespace = await api.namespace();
  const clock = manualClock();
  const one = await stand(t, namespace, 'one', clock);
  one.election.start();
  await until('one leads', () => one.said.includes('leading'));
  const two = await stand(t, namespace, 'two', clock);
  two.election.start();
  await pass(clock, 1, one.proxy, two.proxy);
  one.proxy.add({ mutates: true }, { kind: 'refuse-before' });
  await pass(clock, 12, one.proxy, two.proxy);
  assert.deepEqual(two.said, [], 'the lease has not run out');
  await pass(clock, 6, one.proxy, two.proxy);
  assert.deepEqual(two.said, ['leading']);
  assert.deepEqual(one.said, ['leading', 'lost']);
});

test('K29 a leader that cannot renew stops writing before anybody else may lead', async (t) => {
  const namespace = await api.namespace();
  const clock = manualClock();
  const one = await stand(t, namespace, 'one', clock);
  one.election.start();
  await until('one leads', () => one.said.includes('leading'));
  await pass(clock, 3, one.proxy);
  one.proxy.add({ mutates: true }, { kind: 'status', code: 500 });
  const cutAt = clock.monotonicMs();
  while (one.election.surelyHeld()) await pass(clock, 1, one.proxy);
  const heldMs = clock.monotonicMs() - cutAt;
  assert.ok(heldMs <= 11_000, `held for ${heldMs} ms`);
  assert.deepEqual(one.said, ['leading', 'lost']);
});

test('FA15 a wall clock that jumps an hour either way neither loses nor steals the lease', async (t) => {
  const namespace = await api.namespace();
  const clock = manualClock();
  const one = await stand(t, namespace, 'one', clock);
  one.election.start();
  await until('one leads', () => one.said.includes('leading'));
  const two = await stand(t, namespace, 'two', clock);
  two.election.start();
  for (const jumpMs of [3_600_000, -7_200_000]) {
    clock.jumpWall(jumpMs);
    await pass(clock, 20, one.proxy, two.proxy);
  }
  assert.deepEqual([one.said, two.said], [['leading'], []]);
});

test('two processes that see a free lease at the same time: one leads', async (t) => {
  const namespace = await api.namespace();
  const clock = manualClock();
  const all = await Promise.all(['a', 'b', 'c'].map((identity) => stand(t, namespace, identity, clock)));
  for (const { election } of all) election.start();
  await pass(clock, 5, ...all.map(({ proxy }) => proxy));
  assert.equal(all.filter(({ said }) => said.includes('leading')).length, 1);
});

test('K35 a release while the lease is being tried for, and lost to another, waits for no time to pass', async (t) => {
  const namespace = await api.namespace();
  const clock = manualClock();
  const one = await stand(t, namespace, 'one', clock);
  one.election.start();
  await until('one leads', () => one.said.includes('leading'));
  const two = await stand(t, namespace, 'two', clock);
  const held = two.proxy.add({ mutates: true }, { kind: 'hold' });
  two.election.start();
  await one.election.release();
  await until('two tries', () => held.hits() === 1);
  const taken = { spec: { holderIdentity: 'three' } };
  await mergePatch(api.admin.client, LEASES, { namespace, name: 'leader' }, taken, { manager: 't' });
  const released = two.election.release();
  held.release();
  const late = AbortSignal.timeout(30_000);
  await Promise.race([released, new Promise((_, reject) => late.addEventListener('abort', () => reject(late.reason)))]);
  assert.deepEqual(two.said, []);
  assert.equal((await leaseOf(namespace))?.holder, 'three');
});

test('a renewal whose answer was lost is not a lost lease', async (t) => {
  const namespace = await api.namespace();
  const clock = manualClock();
  const one = await stand(t, namespace, 'one', clock);
  one.election.start();
  await until('one leads', () => one.said.includes('leading'));
  const drop = one.proxy.add({ verb: 'patch', count: 1 }, { kind: 'commit-then-drop' });
  await pass(clock, 10, one.proxy);
  assert.equal(drop.hits(), 1);
  assert.deepEqual(one.said, ['leading']);
  assert.ok(one.election.surelyHeld());
});

type Process = Readonly<{ child: ChildProcess; said: string[]; exited: Promise<number | null> }>;

const launch = (t: TestContext, namespace: string, identity: string): Process => {
  const child = spawn(process.execPath, [PROGRAM, api.kubeconfigPath, namespace, identity, JSON.stringify(SHORT)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said: string[] = [];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => said.push(...text.trim().split('\n')));
  const exited = new Promise<number | null>((resolve) => child.on('exit', resolve));
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await exited;
  });
  return { child, said, exited };
};

test('FA14 K29 a leader that was frozen and resumed writes nothing, and ends', async (t) => {
  const namespace = await api.namespace();
  const admin = api.admin.client;
  const target = await admin.create(SERVICE_ACCOUNTS, { metadata: { namespace, name: 'target' } }, { manager: 't' });
  const one = launch(t, namespace, 'one');
  await until('one writes', () => one.said.includes('leading') && one.said.includes('wrote'));
  const two = launch(t, namespace, 'two');
  await until('two stands by', () => two.said.includes('refused'));
  one.child.kill('SIGSTOP');
  await until('two writes', () => two.said.includes('wrote'));
  const versions: (string | undefined)[] = [];
  const end = new AbortController();
  const { resourceVersion } = await admin.list(SERVICE_ACCOUNTS, { namespace });
  const watching = (async () => {
    for await (const { object } of await admin.watch(SERVICE_ACCOUNTS, {
      namespace,
      resourceVersion,
      timeoutSeconds: 60,
      signal: end.signal,
    })) {
      if (object.metadata.name === 'target') versions.push(object.metadata.labels?.['writer']);
    }
  })();
  const saidBefore = one.said.length;
  one.child.kill('SIGCONT');
  assert.equal(await one.exited, 1);
  assert.ok(one.said.slice(saidBefore).includes('lost'));
  // It may still say 'wrote', of a call that was answered while it was frozen; what it did after that is what the server saw.
  const last = { metadata: { labels: { writer: 'the-test' } } };
  await mergePatch(admin, SERVICE_ACCOUNTS, { namespace, name: 'target' }, last, { manager: 't' });
  await until('every write has been seen', () => versions.includes('the-test'));
  end.abort();
  await watching;
  assert.ok(
    versions.every((writer) => writer === 'two' || writer === 'the-test'),
    versions.join(),
  );
  assert.equal((await admin.get(SERVICE_ACCOUNTS, { namespace, name: 'target' }))?.metadata.uid, target.metadata.uid);
});

test('K35 SIGTERM gives the lease back and exits with 0', async (t) => {
  const namespace = await api.namespace();
  await api.admin.client.create(SERVICE_ACCOUNTS, { metadata: { namespace, name: 'target' } }, { manager: 't' });
  const one = launch(t, namespace, 'one');
  await until('one leads', () => one.said.includes('leading'));
  const two = launch(t, namespace, 'two');
  await until('two stands by', () => two.said.includes('refused'));
  one.child.kill('SIGTERM');
  assert.equal(await one.exited, 0);
  assert.equal(one.said.at(-1), 'released');
  await until('two leads', () => two.said.includes('leading'));
});
