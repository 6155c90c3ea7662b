// The chart renders the CRDs and the admission policy that the schemas give: nothing is lost in the templates.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { before, describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { customResourceDefinition } from '#schema/crd.ts';
import { guardPolicy } from '#schema/resources/policy.ts';
import { KINDS } from '#tools/generators/crds.ts';
import { ensureKubectlHelm } from '#tools/kubectl-helm.ts';

type Rendered = {
  kind: string;
  metadata: { name: string; annotations?: Record<string, string> };
  spec: Record<string, unknown>;
};

describe('objects of the chart that come from schemas', () => {
  let helm = '';
  before(async () => {
    helm = (await ensureKubectlHelm()).helm;
  });
  const render = (...values: readonly string[]): readonly Rendered[] => {
    const chart = new URL('../../charts/beeuni', import.meta.url).pathname;
    const set = ['controlPlane.encryptionKey.existingSecret=key', ...values].map((value) => `--set=${value}`);
    const text = execFileSync(helm, ['template', 'beeuni', chart, '-n', 'beeuni-system', ...set], { encoding: 'utf8' });
    return parseAllDocuments(text)
      .map((document) => document.toJS() as Rendered | null)
      .filter((object) => object !== null);
  };
  const ofKind = (objects: readonly Rendered[], kind: string) => objects.filter((object) => object.kind === kind);

  test('the admission policy of a release is the one that the tests prove, with its accounts and prefixes', () => {
    const prefixes = ['registry.example.com/team/', 'other.example.com/'];
    const objects = render(
      `sandbox.imagePolicy.allowedPrefixes={${prefixes.join()}}`,
      'sandbox.imagePolicy.requireDigest=true',
    );
    const [policy, binding] = guardPolicy({
      releaseName: 'beeuni',
      namespace: 'beeuni-system',
      operatorServiceAccount: 'beeuni-operator',
      controlPlaneServiceAccount: 'beeuni-control-plane',
      allowedPrefixes: prefixes,
      requireDigest: true,
    });
    assert.deepEqual(ofKind(objects, 'ValidatingAdmissionPolicy'), [policy]);
    assert.deepEqual(ofKind(objects, 'ValidatingAdmissionPolicyBinding'), [binding]);
    const accounts = ofKind(objects, 'ServiceAccount').map(({ metadata }) => metadata.name);
    for (const account of ['beeuni-operator', 'beeuni-control-plane']) assert.ok(accounts.includes(account), account);
  });

  test('K31 the CRDs are rendered as generated, kept while crds.keep, and left out without crds.install', () => {
    const kept = ofKind(render(), 'CustomResourceDefinition');
    assert.deepEqual(
      kept.map(({ spec }) => spec),
      KINDS.map((kind) => JSON.parse(JSON.stringify(customResourceDefinition(kind).spec))),
    );
    for (const { metadata } of kept) assert.equal(metadata.annotations?.['helm.sh/resource-policy'], 'keep');
    for (const { metadata } of ofKind(render('crds.keep=false'), 'CustomResourceDefinition')) {
      assert.equal(metadata.annotations, undefined);
    }
    assert.deepEqual(ofKind(render('crds.install=false'), 'CustomResourceDefinition'), []);
  });

  test('without policy.install there is no admission policy', () => {
    assert.deepEqual(ofKind(render('policy.install=false'), 'ValidatingAdmissionPolicy'), []);
  });
});
