// What the API server does that surprises people: facts that our code relies on. A new Kubernetes is a run of this.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ConflictError, InvalidError, NotFoundError } from '#base/errors.ts';
import { apply, applyStatus, mergePatch } from '#kube/apply.ts';
import { isExpired, kubeErrorOf } from '#kube/errors.ts';
import { type KubeObject, NETWORK_POLICIES, SECRETS, SERVICE_ACCOUNTS } from '#kube/resource-types.ts';
import { applyYaml, startTestApi, type TestApi } from '#test/support/kube.ts';
import { until } from '#test/support/until.ts';
import { WIDGET_CRD, WIDGETS } from '#test/support/widget.ts';

const OURS = { manager: 'beeuni-test', force: true };
const STATUS = { manager: 'beeuni-test-status', force: true };
const OTHER_UID = '00000000-0000-4000-8000-000000000000';
let api: TestApi;

before(async () => {
  api = await startTestApi();
  await applyYaml(api.admin.client, WIDGET_CRD);
});
after(async () => api.stop());

const widget = async (spec: Record<string, unknown> = { color: 'red' }) => {
  const namespace = await api.namespace();
  const ref = { namespace, name: 'w' };
  const stored = await apply(api.admin.client, WIDGETS, { metadata: ref, spec }, OURS);
  return { ref, stored, namespace };
};

const codeOf = async (promise: Promise<unknown>): Promise<number | undefined> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return kubeErrorOf(error)?.code;
};

test('C15 an apply that changes nothing does not raise the resourceVersion', async () => {
  const { ref, stored } = await widget();
  const again = await apply(api.admin.client, WIDGETS, { metadata: ref, spec: { color: 'red' } }, OURS);
  assert.equal(again.metadata.resourceVersion, stored.metadata.resourceVersion);
});

test('K25 an apply removes what its manager sent before and omits now, and nothing of another manager', async () => {
  const { ref } = await widget({ color: 'red', size: 1 });
  await apply(
    api.admin.client,
    WIDGETS,
    { metadata: { ...ref, labels: { a: 'b' } } },
    { manager: 'other', force: true },
  );
  const stored = await apply(api.admin.client, WIDGETS, { metadata: ref, spec: { size: 1 } }, OURS);
  assert.equal((stored['spec'] as { color?: string }).color, undefined);
  assert.deepEqual(stored.metadata.labels, { a: 'b' });
});

test('K23 an apply creates a missing object, and with a uid answers 409 or 422 instead', async () => {
  const { client } = api.admin;
  const { ref, stored, namespace } = await widget();
  const missing = { namespace, name: 'missing' };
  assert.equal(await codeOf(apply(client, WIDGETS, { metadata: { ...missing, uid: OTHER_UID } }, OURS)), 409);
  assert.equal(await codeOf(apply(client, WIDGETS, { metadata: { ...ref, uid: OTHER_UID } }, OURS)), 422);
  assert.equal(await client.get(WIDGETS, missing), undefined);
  await apply(client, WIDGETS, { metadata: { ...ref, uid: stored.metadata.uid } }, OURS);
});

test('K24 a status apply ignores the uid and lands on the namesake, but honours the resourceVersion', async () => {
  const { client } = api.admin;
  const { ref, stored, namespace } = await widget();
  const status = { status: { pod: 'p1' } };
  const landed = await applyStatus(client, WIDGETS, { metadata: { ...ref, uid: OTHER_UID }, ...status }, STATUS);
  assert.deepEqual(landed['status'], { pod: 'p1' });
  assert.equal(landed.metadata.uid, stored.metadata.uid);
  const old = { ...ref, resourceVersion: stored.metadata.resourceVersion };
  await assert.rejects(applyStatus(client, WIDGETS, { metadata: old, status: { pod: 'p2' } }, STATUS), ConflictError);
  await assert.rejects(
    applyStatus(client, WIDGETS, { metadata: { namespace, name: 'none' }, ...status }, STATUS),
    NotFoundError,
  );
});

test('K25 a default belongs to whoever created the object: an unforced apply of it conflicts, a merge patch does not', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  const ref = { namespace, name: 'w' };
  await client.create(WIDGETS, { metadata: ref, spec: {} }, { manager: 'kubectl' });
  const suspended: KubeObject = { metadata: ref, spec: { operatingMode: 'Suspended' } };
  await assert.rejects(apply(client, WIDGETS, suspended, { manager: 'beeuni-api', force: false }), ConflictError);
  const patched = await mergePatch(
    client,
    WIDGETS,
    ref,
    { spec: { operatingMode: 'Suspended' } },
    { manager: 'beeuni-api' },
  );
  assert.equal((patched['spec'] as { operatingMode: string }).operatingMode, 'Suspended');
});

test('K7 rules run on a default as it is written, before the defaults inside it', async () => {
  const { client } = api.admin;
  const crd = (egressDefault: string): string =>
    WIDGET_CRD.replaceAll('widgets', 'gadgets')
      .replaceAll('Widget', 'Gadget')
      .replaceAll('singular: widget', 'singular: gadget')
      .replace('default: {mode: Restricted}', `default: ${egressDefault}`)
      .replace("self.mode != 'Restricted' || !has(self.allow)", "self.mode == 'Restricted'");
  await assert.rejects(applyYaml(client, crd('{}')), InvalidError);
  await applyYaml(client, crd('{mode: Restricted}'));
});

test('K10 spec changes and a deletion raise the generation, metadata and status do not', async () => {
  const { client } = api.admin;
  const { ref, stored } = await widget();
  assert.equal(stored.metadata.generation, 1);
  const generation = async (change: Promise<KubeObject>) => (await change).metadata.generation;
  const patch = (body: Record<string, unknown>) => generation(mergePatch(client, WIDGETS, ref, body, OURS));
  assert.equal(await patch({ metadata: { labels: { a: 'b' }, finalizers: ['test.beeuni.dev/hold'] } }), 1);
  assert.equal(await generation(applyStatus(client, WIDGETS, { metadata: ref, status: { pod: 'p' } }, STATUS)), 1);
  assert.equal(await patch({ spec: { size: 2 } }), 2);
  await client.delete(WIDGETS, ref, { uid: stored.metadata.uid ?? '' });
  const deleting = await client.get(WIDGETS, ref);
  assert.notEqual(deleting?.metadata.deletionTimestamp, undefined);
  assert.equal(deleting?.metadata.generation, 3);
  await mergePatch(client, WIDGETS, ref, { metadata: { finalizers: null } }, OURS);
  assert.equal(await client.get(WIDGETS, ref), undefined);
});

test('a main apply does not touch status, and a status apply does not touch spec', async () => {
  const { client } = api.admin;
  const { ref } = await widget({ color: 'red' });
  await applyStatus(client, WIDGETS, { metadata: ref, spec: { color: 'blue' }, status: { pod: 'p' } }, STATUS);
  const stored = await apply(client, WIDGETS, { metadata: ref, spec: { color: 'red' }, status: { pod: 'q' } }, OURS);
  assert.deepEqual([(stored['spec'] as { color: string }).color, stored['status']], ['red', { pod: 'p' }]);
});

test('C4 a watch from a version that is too old ends with 410, as a status or inside the stream', async () => {
  const { client } = api.admin;
  const { namespace } = await widget();
  const read = async (): Promise<void> => {
    const end = new AbortController();
    try {
      const events = await client.watch(WIDGETS, {
        namespace,
        resourceVersion: '1',
        timeoutSeconds: 5,
        signal: end.signal,
      });
      for await (const _ of events) assert.fail('an event came');
    } finally {
      end.abort();
    }
  };
  await assert.rejects(read(), (error: unknown) => isExpired(error));
});

test('C8 a watch ends cleanly at its time limit, with a bookmark before if the kind has changed, else without', async () => {
  const { client } = api.admin;
  const { namespace } = await widget();
  const { resourceVersion } = await client.list(WIDGETS, { namespace });
  const read = async (timeoutSeconds: number): Promise<string[]> => {
    const types: string[] = [];
    const signal = new AbortController().signal;
    const events = await client.watch(WIDGETS, { namespace, resourceVersion, timeoutSeconds, signal });
    for await (const { type } of events) types.push(type);
    return types;
  };
  assert.deepEqual(await read(2), [], 'nothing changed, so there was no sign of life');
  const watching = read(6);
  await client.create(WIDGETS, { metadata: { namespace, name: 'x' } }, OURS);
  const types = await watching;
  assert.equal(types[0], 'ADDED');
  assert.ok(types.length === 1 || types[1] === 'BOOKMARK');
});

test('a watch from version 0 starts with what is there, as ADDED', async () => {
  const { client } = api.admin;
  const { namespace } = await widget();
  const end = new AbortController();
  await until('the watch cache knows the widget', async () => {
    const events = await client.watch(WIDGETS, {
      namespace,
      resourceVersion: '0',
      timeoutSeconds: 1,
      signal: end.signal,
    });
    for await (const event of events) return event.type === 'ADDED' && event.object.metadata.name === 'w';
    return false;
  });
  end.abort();
});

test('K23 a delete of another uid answers 409 and names both', async () => {
  const { ref, stored } = await widget();
  const request = api.admin.client.request({
    verb: 'delete',
    type: WIDGETS,
    path: `/apis/test.beeuni.dev/v1/namespaces/${ref.namespace}/widgets/w`,
    body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: OTHER_UID } },
    idempotent: false,
    mutates: true,
  });
  await assert.rejects(request, (error: unknown) => {
    const known = kubeErrorOf(error);
    return (
      known?.code === 409 && known.message.includes(OTHER_UID) && known.message.includes(stored.metadata.uid ?? '?')
    );
  });
});

test('a network policy whose except lies outside its cidr is refused, and so is an IPv4-mapped range', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  const policy = (ipBlock: Record<string, unknown>): KubeObject => ({
    metadata: { namespace, name: 'p' },
    spec: { podSelector: {}, policyTypes: ['Egress'], egress: [{ to: [{ ipBlock }] }] },
  });
  const create = (ipBlock: Record<string, unknown>) =>
    client.create(NETWORK_POLICIES, policy(ipBlock), { manager: 't', dryRun: true });
  await assert.rejects(create({ cidr: '10.0.0.0/8', except: ['192.168.0.0/16'] }), InvalidError);
  await assert.rejects(create({ cidr: '::/0', except: ['::ffff:10.0.0.0/104'] }), InvalidError);
  await create({ cidr: '0.0.0.0/0', except: ['10.0.0.0/8'] });
});

test('an owned child is collected once its owner is gone, and blockOwnerDeletion does not hinder a background delete', async () => {
  const { client } = api.admin;
  const { ref, stored, namespace } = await widget();
  const owner = { apiVersion: 'test.beeuni.dev/v1', kind: 'Widget', name: 'w', uid: stored.metadata.uid ?? '' };
  const ownerReferences = [{ ...owner, controller: true, blockOwnerDeletion: true }];
  await client.create(SERVICE_ACCOUNTS, { metadata: { namespace, name: 'child', ownerReferences } }, OURS);
  await client.delete(WIDGETS, ref, { uid: stored.metadata.uid ?? '' });
  await until(
    'the child is collected',
    async () => (await client.get(SERVICE_ACCOUNTS, { namespace, name: 'child' })) === undefined,
  );
});

test('metadata can be listed and watched without the values of a Secret', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  const secret = { metadata: { namespace, name: 's' }, stringData: { password: 'canary-value' } };
  const { resourceVersion } = await client.list(SECRETS, { namespace, metadataOnly: true });
  await client.create(SECRETS, secret, OURS);
  const listed = await client.list(SECRETS, { namespace, metadataOnly: true });
  assert.deepEqual(Object.keys(listed.items[0] ?? {}).includes('data'), false);
  assert.doesNotMatch(JSON.stringify(listed), /canary|Y2FuYXJ5/);
  const end = new AbortController();
  const events = await client.watch(SECRETS, {
    namespace,
    metadataOnly: true,
    resourceVersion,
    timeoutSeconds: 30,
    signal: end.signal,
  });
  for await (const event of events) {
    assert.equal(event.object.metadata.name, 's');
    assert.equal(event.object.kind, 'PartialObjectMetadata');
    assert.equal(event.object['data'], undefined);
    break;
  }
  end.abort();
});

test('a dry run refuses what a real write would, and stores nothing', async () => {
  const { client } = api.admin;
  const namespace = await api.namespace();
  const ref = { namespace, name: 'w' };
  await assert.rejects(
    client.create(WIDGETS, { metadata: ref, spec: { size: 11 } }, { manager: 't', dryRun: true }),
    InvalidError,
  );
  await client.create(WIDGETS, { metadata: ref }, { manager: 't', dryRun: true });
  assert.equal(await client.get(WIDGETS, ref), undefined);
});
