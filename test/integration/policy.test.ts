// The admission policy on a real API server: each rule lets one write through and refuses another with its exact message.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { customResourceDefinition } from '#schema/crd.ts';
import { type GuardInputs, guardPolicy } from '#schema/resources/policy.ts';
import { type Apiserver, skipReason, startApiserver } from '#test/cluster/cluster.ts';
import { APPLY, type ApiAnswer, type ApiRequests, apiRequests, MERGE } from '#test/support/api-requests.ts';
import { KINDS } from '#tools/generators/crds.ts';

type Json = Record<string, unknown>;

const INPUTS: GuardInputs = {
  releaseName: 'beeuni',
  namespace: 'beeuni-system',
  operatorServiceAccount: 'beeuni-operator',
  controlPlaneServiceAccount: 'beeuni-control-plane',
  allowedPrefixes: ['registry.example.com/team/'],
  requireDigest: true,
};
const OPERATOR = 'system:serviceaccount:beeuni-system:beeuni-operator';
const CONTROL_PLANE = 'system:serviceaccount:beeuni-system:beeuni-control-plane';
const PERSON = 'ada@example.com';
const DIGEST = `@sha256:${'a'.repeat(64)}`;
const NAMESPACE = 'policy-test';

const PROJECTS = `/apis/beeuni.dev/v1alpha1/namespaces/${NAMESPACE}/projects`;
const SESSIONS = `/apis/beeuni.dev/v1alpha1/namespaces/${NAMESPACE}/sessions`;
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const CLAIMS = `/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims`;
const POLICIES = `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/networkpolicies`;

const project = (name: string, spec: Json = {}, metadata: Json = {}): Json => ({
  apiVersion: 'beeuni.dev/v1alpha1',
  kind: 'Project',
  metadata: { name, ...metadata },
  spec: { repository: { url: 'https://git.example.com/shop.git' }, ...spec },
});
const session = (name: string, spec: Json = {}, metadata: Json = {}): Json => ({
  apiVersion: 'beeuni.dev/v1alpha1',
  kind: 'Session',
  metadata: { name, ...metadata },
  spec: { projectRef: { name: 'shop' }, ...spec },
});
const pod = (name: string, labels: Json = {}): Json => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels },
  spec: { containers: [{ name: 'main', image: 'registry.example.com/any:1' }] },
});

describe('the admission policy on a real API server', { skip: skipReason('apiserver', 'integration') }, () => {
  let api: Apiserver;
  let requests: ApiRequests;

  const post = (path: string, body: Json, as: string, query = '') =>
    requests.call({ method: 'POST', path: path + query, body, as });
  const patch = (path: string, body: Json, as: string) =>
    requests.call({ method: 'PATCH', path, body, as, contentType: MERGE });
  const remove = (path: string, as: string) => requests.call({ method: 'DELETE', path, as });
  const expectAccepted = (answer: ApiAnswer) =>
    assert.ok(answer.status < 300, `${answer.status} ${JSON.stringify(answer.body)}`);
  const expectDenied = (answer: ApiAnswer, text: string) => {
    assert.equal(answer.status, 403, JSON.stringify(answer.body));
    const prefix = `ValidatingAdmissionPolicy 'beeuni-guard' with binding 'beeuni-guard' denied request: `;
    assert.ok(String(answer.body['message']).endsWith(prefix + text), String(answer.body['message']));
  };

  before(async () => {
    api = await startApiserver();
    requests = apiRequests(api);
    for (const kind of KINDS) {
      const crd = customResourceDefinition(kind);
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}?fieldManager=test`;
      expectAccepted(await requests.call({ method: 'PATCH', path, body: crd, contentType: APPLY }));
    }
    expectAccepted(
      await requests.call({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: NAMESPACE } } }),
    );
    const resources = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'];
    for (const [index, object] of guardPolicy(INPUTS).entries()) {
      const path = `/apis/admissionregistration.k8s.io/v1/${resources[index]}/beeuni-guard?fieldManager=test&fieldValidation=Strict`;
      expectAccepted(await requests.call({ method: 'PATCH', path, body: object, contentType: APPLY }));
    }
    await until('the policy acts', async () => {
      const answer = await post(
        SESSIONS,
        session('probe', { source: { kind: 'Trigger', name: 'x' } }),
        PERSON,
        '?dryRun=All',
      );
      return answer.status === 403 ? undefined : JSON.stringify(answer.body);
    });
    expectAccepted(await post(PROJECTS, project('shop'), PERSON));
    expectAccepted(await post(SESSIONS, session('work'), PERSON));
  });
  after(async () => {
    requests?.close();
    await api?.stop();
  });

  /** Tries at most 20 s until `attempt` gives undefined; its text is what was seen last. */
  async function until(what: string, attempt: () => Promise<string | undefined>): Promise<void> {
    const deadline = performance.now() + 20_000;
    for (;;) {
      const seen = await attempt();
      if (seen === undefined) return;
      assert.ok(performance.now() < deadline, `${what} is not so after 20 s: ${seen}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  test('the server finds no type error in any expression of the policy', async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/beeuni-guard';
    let checked: Json | undefined;
    await until('the policy is type-checked', async () => {
      const { body } = await requests.call({ method: 'GET', path });
      const status = body['status'] as Json | undefined;
      checked = status?.['typeChecking'] as Json | undefined;
      return checked === undefined ? JSON.stringify(status) : undefined;
    });
    assert.deepEqual(checked?.['expressionWarnings'] ?? [], []);
  });

  test('V1 the operator writes status and a person, even a cluster administrator, does not', async () => {
    const status = { status: { phase: 'Ready' } };
    expectDenied(
      await patch(`${PROJECTS}/shop/status`, status, PERSON),
      'status is written by the Beeuni operator only',
    );
    expectDenied(
      await patch(`${SESSIONS}/work/status`, { status: { phase: 'Running' } }, CONTROL_PLANE),
      'status is written by the Beeuni operator only',
    );
    expectAccepted(await patch(`${PROJECTS}/shop/status`, status, OPERATOR));
  });

  test('V2 a person sets no label or annotation of ours and may set any other', async () => {
    const refused = 'labels and annotations with the prefix beeuni.dev/ are set by Beeuni only: beeuni.dev/project';
    expectDenied(await post(SESSIONS, session('l1', {}, { labels: { 'beeuni.dev/project': 'a' } }), PERSON), refused);
    expectDenied(
      await post(SESSIONS, session('l2', {}, { annotations: { 'beeuni.dev/project': 'a' } }), CONTROL_PLANE),
      refused,
    );
    expectAccepted(await post(SESSIONS, session('l3', {}, { labels: { team: 'a', 'my.beeuni.dev/x': 'b' } }), PERSON));
  });

  test('V2 pods, volume claims and network policies with a label of ours are made by the operator only', async () => {
    const labels = { 'beeuni.dev/session-uid': 'a', 'beeuni.dev/project': 'b' };
    const claim = {
      metadata: { name: 'c1', labels },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    };
    const networkPolicy = { metadata: { name: 'n1', labels }, spec: { podSelector: {} } };
    for (const [path, body] of [
      [PODS, pod('p1', labels)],
      [CLAIMS, claim],
      [POLICIES, networkPolicy],
    ] as const) {
      const answer = await post(path, body, PERSON);
      assert.equal(answer.status, 403, path);
      const message = String(answer.body['message']);
      assert.ok(message.includes('beeuni.dev/session-uid') && message.includes('beeuni.dev/project'), message);
      expectAccepted(await post(path, body, OPERATOR));
    }
  });

  test('V2 a label of ours is neither changed nor removed by others, and the rest of the object may change', async () => {
    const label = 'beeuni.dev/session-uid';
    expectAccepted(await post(PODS, pod('guarded', { [label]: 'a' }), OPERATOR));
    const refused = `labels and annotations with the prefix beeuni.dev/ are set by Beeuni only: ${label}`;
    for (const value of ['b', null]) {
      expectDenied(await patch(`${PODS}/guarded`, { metadata: { labels: { [label]: value } } }, PERSON), refused);
    }
    expectAccepted(await patch(`${PODS}/guarded`, { metadata: { labels: { team: 'a' } } }, PERSON));
    expectAccepted(await patch(`${PODS}/guarded`, { metadata: { labels: { [label]: 'b' } } }, OPERATOR));
  });

  test('V2 pods without a label of ours do not meet the policy', async () => {
    expectAccepted(await post(PODS, pod('plain', { team: 'a' }), PERSON));
    expectAccepted(await patch(`${PODS}/plain`, { metadata: { labels: { team: 'b' } } }, PERSON));
    expectAccepted(await remove(`${PODS}/plain`, PERSON));
  });

  test('V3 a source other than User is created by the control plane only', async () => {
    const triggered = session('t1', { source: { kind: 'Trigger', name: 'nightly' } });
    const answer = await post(SESSIONS, triggered, PERSON);
    expectDenied(answer, 'spec.source.kind Trigger is set by the control plane only; leave spec.source out');
    assert.ok(
      String(answer.body['message']).startsWith('sessions.beeuni.dev "t1" is forbidden: '),
      String(answer.body['message']),
    );
    expectAccepted(await post(SESSIONS, triggered, CONTROL_PLANE));
    expectAccepted(await post(SESSIONS, session('u1', { source: { kind: 'User' } }), PERSON));
    expectAccepted(await patch(`${SESSIONS}/t1`, { spec: { operatingMode: 'Suspended' } }, PERSON));
  });

  test('V4 a project with sessions and deletionPolicy Block is not deleted, and one with Cascade is', async () => {
    const sessions = { total: 3, running: 1, suspended: 2, failed: 0 };
    for (const [name, deletionPolicy] of [
      ['blocked', 'Block'],
      ['cascading', 'Cascade'],
    ] as const) {
      expectAccepted(await post(PROJECTS, project(name, { deletionPolicy }), PERSON));
      expectAccepted(await patch(`${PROJECTS}/${name}/status`, { status: { sessions } }, OPERATOR));
    }
    const answer = await remove(`${PROJECTS}/blocked`, PERSON);
    expectDenied(
      answer,
      'project blocked has 3 sessions and deletionPolicy Block; delete them first or set spec.deletionPolicy to Cascade',
    );
    assert.ok(String(answer.body['message']).startsWith('projects.beeuni.dev "blocked" is forbidden: '));
    expectAccepted(await remove(`${PROJECTS}/cascading`, PERSON));
    const none = { ...sessions, total: 0 };
    expectAccepted(await patch(`${PROJECTS}/blocked/status`, { status: { sessions: none } }, OPERATOR));
    expectAccepted(await remove(`${PROJECTS}/blocked`, PERSON));
  });

  test('V4 deleting a namespace deletes its blocked project', async () => {
    const namespace = 'policy-test-gone';
    const projects = `/apis/beeuni.dev/v1alpha1/namespaces/${namespace}/projects`;
    expectAccepted(
      await requests.call({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } }),
    );
    expectAccepted(await post(projects, project('blocked'), PERSON));
    const sessions = { total: 1, running: 1, suspended: 0, failed: 0 };
    expectAccepted(await patch(`${projects}/blocked/status`, { status: { sessions } }, OPERATOR));
    expectAccepted(await remove(`/api/v1/namespaces/${namespace}`, PERSON));
    await until('the namespace is gone', async () => {
      const answer = await requests.call({ method: 'GET', path: `/api/v1/namespaces/${namespace}` });
      return answer.status === 404 ? undefined : JSON.stringify(answer.body['status']);
    });
  });

  test('V5 images are under an allowed prefix and carry a digest', async () => {
    const create = (sandbox: Json) => post(PROJECTS, project('images', { sandbox }), PERSON, '?dryRun=All');
    const good = `registry.example.com/team/img${DIGEST}`;
    const foreign = `docker.io/library/img${DIGEST}`;
    expectAccepted(await create({ image: good, allowedImages: [good] }));
    expectDenied(await create({ image: foreign }), `spec.sandbox.image ${foreign} is not under an allowed prefix`);
    expectDenied(
      await create({ allowedImages: [good, foreign] }),
      `spec.sandbox.allowedImages ${foreign} is not under an allowed prefix`,
    );
    const tagged = 'registry.example.com/team/img:1';
    expectDenied(await create({ image: tagged }), `spec.sandbox.image ${tagged} has no digest`);
    expectDenied(await create({ allowedImages: [tagged] }), `spec.sandbox.allowedImages ${tagged} has no digest`);
  });

  test('V5 an image that was stored before the policy became strict does not block other changes', async () => {
    const policy = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/beeuni-guard';
    const binding = guardPolicy(INPUTS)[1];
    const foreign = `docker.io/library/img${DIGEST}`;
    expectAccepted(await remove(policy, PERSON));
    await until('the policy rests', async () => {
      const answer = await post(PROJECTS, project('older', { sandbox: { image: foreign } }), PERSON);
      return answer.status === 201 ? undefined : JSON.stringify(answer.body);
    });
    const path = policy.replace(/\/beeuni-guard$/, '');
    expectAccepted(await requests.call({ method: 'POST', path, body: binding }));
    await until('the policy acts', async () => {
      const answer = await post(PROJECTS, project('newer', { sandbox: { image: foreign } }), PERSON, '?dryRun=All');
      return answer.status === 403 ? undefined : JSON.stringify(answer.body);
    });
    expectAccepted(
      await patch(`${PROJECTS}/older`, { metadata: { finalizers: ['beeuni.dev/project-protection'] } }, OPERATOR),
    );
    expectAccepted(await patch(`${PROJECTS}/older`, { metadata: { finalizers: null } }, OPERATOR));
    expectAccepted(await patch(`${PROJECTS}/older`, { spec: { operatingMode: 'Suspended' } }, PERSON));
  });

  test('a name that could leave its CEL literal is refused before a policy is made', () => {
    assert.throws(() => guardPolicy({ ...INPUTS, namespace: "a' || true || '" }), /is not a Kubernetes name/);
  });
});
