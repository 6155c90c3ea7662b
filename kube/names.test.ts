// Names, labels and ownership of children.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { childLabels, childName, labelValue, podName } from './names.ts';
import { controllerReference, ownershipOf } from './owner.ts';
import { SESSIONS } from './resource-types.ts';

const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$/;

test('K3 a child name of the longest session name fits a DNS label', () => {
  const longest = 's'.repeat(46);
  const uid = '0f1e2d3c-0000-4000-8000-000000000000';
  assert.equal(childName(longest, uid), `${longest}-0f1e2`);
  assert.ok(podName(longest, uid, 999_999).length <= 63);
});

test('whatever the text, a label value is valid, and different texts rarely meet', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 200, unit: 'binary' }), (text) => {
      const value = labelValue(text);
      return value.length <= 63 && LABEL_VALUE.test(value);
    }),
  );
  assert.equal(labelValue('plain-name.1'), 'plain-name.1');
  assert.notEqual(labelValue(`${'a'.repeat(70)}x`), labelValue(`${'a'.repeat(70)}y`));
});

test('the labels of a child name its session, project and source in lower case', () => {
  const labels = childLabels({
    project: 'shop',
    session: 'fix',
    sessionUid: 'u-1',
    source: 'Trigger',
    version: '0.1.0',
  });
  assert.equal(labels['beeuni.dev/session-uid'], 'u-1');
  assert.equal(labels['beeuni.dev/source'], 'trigger');
  assert.equal(labels['app.kubernetes.io/managed-by'], 'beeuni-operator');
});

test('K22 a child is ours by the uid of its controller and by nothing else', () => {
  const owner = { name: 'fix', namespace: 'a', uid: 'u-1' };
  const reference = controllerReference(SESSIONS, owner);
  assert.equal(reference.blockOwnerDeletion, true);
  const labels = { 'beeuni.dev/session-uid': 'u-1' };
  assert.equal(ownershipOf({ name: 'c', ownerReferences: [reference] }, 'u-1'), 'ours');
  assert.equal(ownershipOf({ name: 'c', ownerReferences: [{ ...reference, uid: 'u-2' }], labels }, 'u-1'), 'other');
  assert.equal(
    ownershipOf({ name: 'c', ownerReferences: [{ ...reference, controller: false }], labels }, 'u-1'),
    'nobody',
  );
  assert.throws(() => controllerReference(SESSIONS, { name: 'fix' }), TypeError);
});
