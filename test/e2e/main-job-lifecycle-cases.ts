// Sessions that are suspended, resumed and restarted, and whose processes are killed, on a whole cluster.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  conditionOf,
  HANG_LIMIT_MS,
  type Resource,
  readEvents,
  waitForEvent,
  waitForResource,
} from '#test/support/installation.ts';
import { waitFor } from '#tools/up/run-program.ts';
import { NAMES } from '#tools/up/sample-objects.ts';

import { bash, type Scene } from './main-job-scene.ts';

// Ends the node process of a container by its command line; works in images without procps.
const killByCommand = (main: string): string =>
  `for p in /proc/[0-9]*; do case "$(tr '\\0' ' ' < $p/cmdline 2>/dev/null)" in node*${main}*) kill -9 "\${p#/proc/}";; esac; done`;

const patchSpec = (all: Scene['all'], name: string, spec: Readonly<Record<string, string>>): Promise<string> => {
  const patch = JSON.stringify({ spec });
  return all.kubectl.run('patch', 'session', name, '-n', NAMES.namespace, '--type=merge', '-p', patch);
};

/** Cases of main-job.test.ts. */
export const lifecycleCases = (scene: () => Scene): void => {
  test('suspend keeps the files, resume continues, a restart token makes a new attempt', async () => {
    const { all, ready, start } = scene();
    await start('keep', `${bash('echo kept > /workspace/kept.txt; echo done')}\n@@say written`);
    await waitForResource(
      all.kubectl,
      'session',
      'keep',
      'a turn',
      (one) => one.status?.lastTurn?.outcome === 'Succeeded',
    );
    await patchSpec(all, 'keep', { operatingMode: 'Suspended' });
    const suspended = await waitForResource(
      all.kubectl,
      'session',
      'keep',
      'Suspended',
      (one) => one.status?.phase === 'Suspended',
    );
    assert.equal(conditionOf(suspended, 'Suspended')?.reason, 'Requested');
    assert.equal(
      (
        await all.kubectl.run('get', 'pods', '-n', NAMES.namespace, '-l', 'beeuni.dev/session=keep', '-o', 'name')
      ).trim(),
      '',
    );
    await patchSpec(all, 'keep', { operatingMode: 'Running' });
    const resumed = await ready('keep');
    assert.equal(resumed.status?.pod?.attempt, 2);
    await all.api.send('POST', `/v1/namespaces/${NAMES.namespace}/sessions/keep/prompts`, {
      messageId: 'look',
      parts: [{ type: 'text', text: `${bash('cat /workspace/kept.txt')}\n@@say read` }],
    });
    await waitForEvent(
      all.api,
      'keep',
      'the kept file',
      ({ type, data }) => type === 'message.part.updated' && /"output":"kept/.test(JSON.stringify(data)),
    );
    await patchSpec(all, 'keep', { restartToken: 'again' });
    const restarted = await waitForResource(
      all.kubectl,
      'session',
      'keep',
      'attempt 3 Ready',
      (one) => one.status?.pod?.attempt === 3 && conditionOf(one, 'Ready')?.status === 'True',
    );
    assert.equal(restarted.status?.generation, 3);
  });

  for (const victim of ['operator', 'control-plane', 'daemon'] as const) {
    test(`kill -9 of the ${victim} in a turn ends in one terminal event, one pod at a time, and nothing acknowledged is lost`, async () => {
      const { all, start } = scene();
      const name = `kill-${victim}`;
      await start(name, `${bash('echo first; sleep 8; echo second')}\n@@say survived`);
      await waitForEvent(
        all.api,
        name,
        'a running tool',
        ({ type, data }) => type === 'message.part.updated' && JSON.stringify(data).includes('"running"'),
      );
      const before = await readEvents(all.api, name);
      const podsSeen = new Set<string>();
      if (victim === 'daemon') {
        const session = await all.kubectl.get<Resource>('session.beeuni.dev', name, NAMES.namespace);
        await all.kubectl
          .run(
            'exec',
            '-n',
            NAMES.namespace,
            String(session?.status?.pod?.name),
            '--',
            'sh',
            '-c',
            killByCommand('beeunid.mjs'),
          )
          .catch(() => '');
      } else {
        const selector = `app.kubernetes.io/component=${victim}`;
        const pod = (
          await all.kubectl.run(
            'get',
            'pods',
            '-n',
            NAMES.systemNamespace,
            '-l',
            selector,
            '-o',
            'jsonpath={.items[0].metadata.name}',
          )
        ).trim();
        const main = victim === 'operator' ? 'operator/main.ts' : 'controlplane/main.ts';
        await all.kubectl
          .run('exec', '-n', NAMES.systemNamespace, pod, '--', 'sh', '-c', killByCommand(main))
          .catch(() => '');
      }
      if (victim === 'daemon') {
        // The failure names its cause and cools down; a person who does not want to wait asks for a restart.
        const failed = await waitForResource(
          all.kubectl,
          'session',
          name,
          'the cause',
          (one) => one.status?.failure !== undefined,
        );
        assert.match(String(failed.status?.failure?.message), /^the daemon ended with exit code 137: killed/);
        await all.kubectl.run(
          'patch',
          'session',
          name,
          '-n',
          NAMES.namespace,
          '--type=merge',
          '-p',
          '{"spec":{"restartToken":"now"}}',
        );
      }
      const settled = await waitFor(
        `${name} to settle`,
        async () => {
          const pods = JSON.parse(
            await all.kubectl.run(
              'get',
              'pods',
              '-n',
              NAMES.namespace,
              '-l',
              `beeuni.dev/session=${name}`,
              '-o',
              'json',
            ),
          ) as { items: { metadata: { name: string } }[] };
          assert.ok(pods.items.length <= 1, 'never two pods');
          for (const { metadata } of pods.items) podsSeen.add(metadata.name);
          const session = await all.kubectl.get<Resource>('session.beeuni.dev', name, NAMES.namespace);
          const done = session?.status?.lastTurn !== undefined && conditionOf(session, 'Ready')?.status === 'True';
          return done || session?.status?.phase === 'Failed' ? session : undefined;
        },
        { timeoutMs: HANG_LIMIT_MS, everyMs: 300 },
      );
      if (settled.status?.phase === 'Failed')
        assert.ok(settled.status.failure?.category, 'a failed session names its cause');
      const events = await readEvents(all.api, name);
      assert.deepEqual(
        events.slice(0, before.length).map(({ seq, type }) => [seq, type]),
        before.map(({ seq, type }) => [seq, type]),
      );
      const turns = new Set(events.filter(({ type }) => type === 'turn.started').map(({ turnId }) => turnId));
      for (const turn of turns)
        assert.equal(
          events.filter(({ type, turnId }) => type === 'turn.ended' && turnId === turn).length,
          1,
          `turn ${turn}`,
        );
      assert.ok(podsSeen.size <= (victim === 'daemon' ? 2 : 1), [...podsSeen].join());
      await all.kubectl.run('delete', 'session', name, '-n', NAMES.namespace, '--timeout=300s');
    });
  }
};
