// Plays the scheduler, the kubelet and the volume binder where none runs: writes node names and pod status through the API.
// It follows pods by a watch; a test says what each pod does. Must not know the operator.

import { mergePatch } from '#kube/apply.ts';
import { Informer } from '#kube/informer.ts';
import { CHILD_SELECTOR } from '#kube/names.ts';
import { type KubeObject, PODS } from '#kube/resource-types.ts';
import type { TestClient } from './kube.ts';

/** What a player does with a new pod: run it, or leave it Pending. */
export type PlayMode = 'run' | 'hold';

/** A running player. */
export type NodePlayer = Readonly<{
  /** For pods that come from now on. */
  mode: (mode: PlayMode) => void;
  /** Pods that were ever seen, by uid, with their names. */
  seen: () => ReadonlyMap<string, string>;
  /** The most pods that were alive at once, by owner uid. */
  mostAtOnce: (ownerUid: string) => number;
  pods: () => readonly KubeObject[];
  run: (pod: KubeObject) => Promise<void>;
  /** Ends the container; the pod object stays, Failed. */
  end: (pod: KubeObject, end: Readonly<{ exitCode: number; reason?: string; message?: string }>) => Promise<void>;
  /** Writes a status as it is. */
  setStatus: (pod: KubeObject, status: Readonly<Record<string, unknown>>) => Promise<void>;
  stop: () => Promise<void>;
}>;

const NODE = 'node-1';
const yes = (type: string) => ({
  type,
  status: 'True',
  lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
});

/** Plays the node for one namespace. */
export const startNodePlayer = async (
  test: TestClient,
  namespace: string,
  first: PlayMode = 'run',
): Promise<NodePlayer> => {
  const { client } = test;
  const seen = new Map<string, string>();
  const most = new Map<string, number>();
  const played = new Set<string>();
  const pending = new Set<Promise<void>>();
  let mode = first;

  const informer = new Informer<KubeObject>(
    { type: PODS, selection: { namespace, labelSelector: CHILD_SELECTOR }, project: (pod) => structuredClone(pod) },
    { client, clock: test.clock, random: Math.random, log: test.log, metrics: test.metrics },
  );
  const pods = (): KubeObject[] => [...informer.cache.entries()].flatMap(({ value }) => value ?? []);

  const setStatus = async ({ metadata }: KubeObject, status: Readonly<Record<string, unknown>>): Promise<void> => {
    await mergePatch(client, PODS, metadata, { status }, { manager: 'kubelet', subresource: 'status' });
  };
  const bind = async (pod: KubeObject): Promise<void> => {
    if ((pod['spec'] as { nodeName?: string }).nodeName !== undefined) return;
    const { namespace: ns, name } = pod.metadata;
    await client.request({
      verb: 'create',
      type: PODS,
      path: `/api/v1/namespaces/${ns}/pods/${name}/binding`,
      body: {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name, namespace: ns },
        target: { apiVersion: 'v1', kind: 'Node', name: NODE },
      },
      idempotent: false,
      mutates: true,
    });
  };
  const run = async (pod: KubeObject): Promise<void> => {
    await bind(pod);
    await setStatus(pod, {
      phase: 'Running',
      podIP: '10.1.2.3',
      podIPs: [{ ip: '10.1.2.3' }],
      conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(yes),
      containerStatuses: [
        {
          name: 'sandbox',
          ready: true,
          restartCount: 0,
          image: 'sandbox:1',
          imageID: 'registry.example.com/sandbox@sha256:11',
          state: { running: { startedAt: new Date().toISOString().replace(/\.\d+/, '') } },
        },
      ],
    });
  };
  const remove = async ({ metadata }: KubeObject): Promise<void> => {
    await client.delete(PODS, metadata, { uid: metadata.uid ?? '', graceSeconds: 0 });
  };
  const follow = (what: Promise<void>): void => {
    const caught = what.catch((error: unknown) => test.log.debug('the node player was too late', { err: error }));
    pending.add(caught);
    void caught.finally(() => pending.delete(caught));
  };

  const count = (ownerUid: string): void => {
    const alive = informer.cache.byOwner(ownerUid).length;
    most.set(ownerUid, Math.max(most.get(ownerUid) ?? 0, alive));
  };

  informer.subscribe((key) => {
    const entry = informer.cache.entry(key);
    const pod = entry?.value;
    if (entry === undefined || pod === undefined) return;
    if (entry.ownerUid !== undefined) count(entry.ownerUid);
    seen.set(entry.uid, entry.name);
    if (pod.metadata.deletionTimestamp !== undefined) {
      if (!played.has(`gone ${entry.uid}`)) {
        played.add(`gone ${entry.uid}`);
        follow(remove(pod));
      }
    } else if (mode === 'run' && !played.has(entry.uid)) {
      played.add(entry.uid);
      follow(run(pod));
    }
  });
  informer.start();
  await informer.whenSynced();

  return {
    mode: (next) => {
      mode = next;
    },
    seen: () => seen,
    mostAtOnce: (ownerUid) => most.get(ownerUid) ?? 0,
    pods,
    run,
    setStatus,
    end: (pod, { exitCode, reason = 'Error', message = '' }) =>
      setStatus(pod, {
        phase: 'Failed',
        containerStatuses: [
          {
            name: 'sandbox',
            ready: false,
            restartCount: 0,
            image: 'sandbox:1',
            imageID: 'registry.example.com/sandbox@sha256:11',
            state: { terminated: { exitCode, reason, message } },
          },
        ],
      }),
    stop: async () => {
      await informer.stop();
      await Promise.all(pending);
    },
  };
};
