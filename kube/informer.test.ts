// The informer against scripted answers, for what a real server cannot be made to do: a store that goes back in time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '#base/log.ts';
import { createMetrics } from '#base/metrics.ts';
import { KUBE_METRICS } from '#schema/metrics.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import type { KubeClient, ListPage } from './client.ts';
import { KubeError } from './errors.ts';
import { Informer } from './informer.ts';
import { type KubeObject, SERVICE_ACCOUNTS } from './resource-types.ts';

const object = (name: string, resourceVersion: string): KubeObject => ({
  metadata: { namespace: 'ns', name, uid: `uid-${name}`, resourceVersion },
});

/** Lists come from `versions`, the last one for ever; each watch but the last answers 410. */
const scripted = (versions: readonly string[]) => {
  let lists = 0;
  const client: Pick<KubeClient, 'listPages' | 'watch'> = {
    listPages: async function* <T extends KubeObject>() {
      const resourceVersion = versions[Math.min(lists, versions.length - 1)] ?? '0';
      lists += 1;
      const page: ListPage<KubeObject> = { items: [object('a', resourceVersion)], resourceVersion, more: false };
      yield page as ListPage<T>;
    },
    watch: async (_type, { signal }) => {
      if (lists < versions.length) throw new KubeError(410, 'Expired', 'too old');
      // oxlint-disable-next-line require-yield -- the stream of a server that never sends anything
      return (async function* () {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      })();
    },
  };
  return { client, lists: () => lists };
};

const follow = async (versions: readonly string[], seconds: number) => {
  const clock = manualClock();
  const { client, lists } = scripted(versions);
  const log = createLogger({ level: 'error', write: () => {} });
  const { instruments: metrics } = createMetrics(KUBE_METRICS);
  const informer = new Informer(
    { type: SERVICE_ACCOUNTS, project: ({ metadata }) => metadata.name },
    { client, clock, random: () => 0, log, metrics },
  );
  informer.start();
  const seen: (string | undefined)[] = [];
  for (let second = 0; second < seconds; second += 1) {
    await clock.advance(1_000);
    const version = informer.cache.entry('ns/a')?.resourceVersion;
    if (version !== seen.at(-1)) seen.push(version);
  }
  await informer.stop();
  return { seen, lists: lists() };
};

test('FA11 a list that is older than what was seen changes nothing', async () => {
  const { seen, lists } = await follow(['100', '50', '101'], 60);
  assert.deepEqual(seen, ['100', '101']);
  assert.equal(lists, 3);
});

test('a store that went back in time is believed at the third list', async () => {
  const { seen, lists } = await follow(['100', '50', '50', '50'], 120);
  assert.deepEqual(seen, ['100', '50']);
  assert.equal(lists, 4);
});
