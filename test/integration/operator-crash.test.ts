// FA1, FA2: the operator dies before and after each of its writes, in every move of a Session, and the next one reaches
// the same end. All writes of a clean run are tried, not a sample. A second pod never exists.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS, PODS } from '#kube/resource-types.ts';
import type { Session } from '#schema/resources/session.ts';
import { skipReason } from '#test/cluster/cluster.ts';
import type { FaultMatch, RecordedCall } from '#test/support/fault-proxy.ts';
import { applyFile, startTestApi, type TestApi } from '#test/support/kube.ts';
import {
  type OperatorBench,
  type RunningOperator,
  startOperatorBench,
  writeLine,
} from '#test/support/operator-bench.ts';
import { until } from '#test/support/until.ts';

const skip = skipReason('apiserver', 'integration');
const isReady = ({ status, metadata }: Session) =>
  status?.conditions?.[0]?.status === 'True' && status.conditions[0].observedGeneration === metadata.generation;
const inPhase = (phase: string) => (session: Session) => session.status?.phase === phase;

type Scenario = Readonly<{
  /** Before the writes that count. */
  prepare: (bench: OperatorBench, name: string) => Promise<void>;
  /** From the wish to its end. */
  run: (bench: OperatorBench, name: string) => Promise<void>;
}>;

const nothing = async (): Promise<void> => {};
const start = async (
  bench: OperatorBench,
  name: string,
  spec: Readonly<Record<string, unknown>> = {},
): Promise<void> => {
  await bench.createSession(name, spec);
  await bench.untilSession(name, 'is ready', isReady);
};

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  start: { prepare: nothing, run: start },
  suspend: {
    prepare: start,
    run: async (bench, name) => {
      await bench.patchSession(name, { operatingMode: 'Suspended' });
      await bench.untilSession(name, 'is suspended', inPhase('Suspended'));
    },
  },
  resume: {
    prepare: async (bench, name) => {
      await start(bench, name);
      await bench.patchSession(name, { operatingMode: 'Suspended' });
      await bench.untilSession(name, 'is suspended', inPhase('Suspended'));
    },
    run: async (bench, name) => {
      await bench.patchSession(name, { operatingMode: 'Running' });
      await bench.untilSession(name, 'is ready', isReady);
    },
  },
  restart: {
    prepare: start,
    run: async (bench, name) => {
      await bench.patchSession(name, { restartToken: 'x' });
      await bench.untilSession(name, 'is ready again', (s) => isReady(s) && s.status?.observedRestartToken === 'x');
    },
  },
  failure: {
    prepare: start,
    run: async (bench, name) => {
      const session = await bench.session(name);
      const pod = bench.node.pods().find(({ metadata }) => metadata.uid === session?.status?.pod?.uid);
      assert.ok(pod);
      await bench.node.end(pod, { exitCode: 137, reason: 'OOMKilled' });
      await bench.untilSession(name, 'cools down', (s) => s.status?.failure !== undefined && !hasPod(bench, s));
    },
  },
  task: {
    prepare: async (bench, name) => start(bench, name, { mode: 'Task', prompt: 'do it' }),
    run: async (bench, name) => {
      const session = await bench.session(name);
      bench.raise(session?.metadata.uid ?? '', { specPromptFinal: { outcome: 'Succeeded', message: null } });
      await bench.untilSession(name, 'has succeeded', inPhase('Succeeded'));
    },
  },
  delete: {
    prepare: start,
    run: async (bench, name) => {
      await bench.deleteSession(name);
      await bench.untilGone(name);
    },
  },
};

const hasPod = (bench: OperatorBench, { metadata }: Session): boolean =>
  bench.node.pods().some((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));

describe('operator, crash points', { skip }, () => {
  let api: TestApi;
  let bench: OperatorBench;
  let operator: RunningOperator;

  before(async () => {
    api = await startTestApi();
    await applyFile(api.admin.client, 'crds/projects.yaml');
    await applyFile(api.admin.client, 'crds/sessions.yaml');
    bench = await startOperatorBench(api);
    operator = await bench.startOperator();
    await bench.project({ limits: { maxRunning: 500, maxSessions: 1_000 } });
  });
  after(async () => {
    await bench?.stop();
    await api?.stop();
  });

  /** What a Session came to, without names, uids and times. */
  const endOf = async (name: string) => {
    const session = await bench.session(name);
    if (session === undefined) return 'gone';
    const { status, metadata } = session;
    const owned = async (kind: typeof PODS) => {
      const { items } = await api.admin.client.list(kind, { namespace: bench.namespace });
      return items.filter((item) => item.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid)).length;
    };
    return {
      phase: status?.phase,
      finalizers: metadata.finalizers,
      attempt: status?.pod?.attempt,
      bound: status?.pod?.uid !== undefined,
      failure: status?.failure?.category,
      attempts: status?.failure?.attempts,
      suspension: status?.suspension?.reason,
      token: status?.observedRestartToken,
      finished: status?.finishedAt !== undefined,
      conditions: status?.conditions?.map(({ type, status: value, reason }) => `${type}=${value} ${reason}`),
      pods: await owned(PODS),
      networkPolicies: await owned(NETWORK_POLICIES),
      volumes: await owned(PERSISTENT_VOLUME_CLAIMS),
    };
  };

  const writesOf = (name: string, mark: number): RecordedCall[] =>
    bench.writesSince(mark).filter((call) => {
      const made = (call.body as { metadata?: { name?: string } } | undefined)?.metadata?.name ?? '';
      return [call.name, made].some((each) => each === name || each.startsWith(`${name}-`));
    });

  /** The rule that hits write `n` of a clean run in a run of its own. */
  const matchOf = (calls: readonly RecordedCall[], n: number, name: string): FaultMatch => {
    const call = calls[n] as RecordedCall;
    const isSession = call.resource === 'sessions';
    const same = (other: RecordedCall) =>
      other.verb === call.verb && other.resource === call.resource && other.subresource === call.subresource;
    return {
      verb: call.verb,
      resource: call.resource,
      subresource: call.subresource,
      namespace: bench.namespace,
      ...(isSession ? { name } : {}),
      from: calls.slice(0, n + 1).filter(same).length,
      count: 1,
    };
  };

  for (const [title, scenario] of Object.entries(SCENARIOS)) {
    test(`FA1 FA2 the operator dies around each write of a ${title}, and the end is the same`, async () => {
      const clean = `${title}-clean`;
      await scenario.prepare(bench, clean);
      const mark = bench.mark();
      await scenario.run(bench, clean);
      const calls = writesOf(clean, mark);
      const wanted = await endOf(clean);
      assert.ok(calls.length > 0, 'a clean run writes');

      for (const [n, call] of calls.entries()) {
        for (const when of ['before', 'after'] as const) {
          const name = `${title}-${n}-${when}`;
          await scenario.prepare(bench, name);
          let isDead = false;
          const victim = operator;
          const rule = bench.proxy.add(matchOf(calls, n, name), {
            kind: 'kill',
            at: when,
            kill: () => {
              victim.kill();
              isDead = true;
            },
          });
          const run = scenario.run(bench, name);
          run.catch(() => undefined);
          await until(`the operator dies ${when} ${writeLine(call)} of ${name}`, () => isDead, {
            describe: () =>
              bench.proxy.calls.slice(-12).map((each) => `${writeLine(each)} ${each.name} ${each.serverStatus}`),
          });
          rule.release();
          operator = await bench.startOperator();
          await run;
          assert.equal(rule.hits(), 1);
          assert.deepEqual(await endOf(name), wanted, `killed ${when} ${writeLine(call)}`);
        }
      }
      for (const pod of bench.node.pods()) {
        const owner = pod.metadata.ownerReferences?.[0]?.uid ?? '';
        assert.ok(bench.node.mostAtOnce(owner) <= 1, 'a second pod was there');
      }
    });
  }
});
