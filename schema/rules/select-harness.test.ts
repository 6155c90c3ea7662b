import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MANIFEST_RUNTIMES } from '../resources/sandbox-fields.ts';
import { selectHarness } from './select-harness.ts';

const RUNTIMES = [undefined, ...MANIFEST_RUNTIMES];

test('A6 A7 with the gateway off the harness is opencode, whatever else is said', () => {
  for (const piHarness of [true, false]) {
    for (const manifestRuntime of RUNTIMES) {
      const choice = selectHarness({ llmGateway: false, piHarness, manifestRuntime });
      assert.deepEqual(choice, { id: 'opencode', reason: 'gateway-off' });
    }
  }
});

test('A6 with the gateway on the flag pi_harness wins over the manifest', () => {
  for (const manifestRuntime of RUNTIMES) {
    const choice = selectHarness({ llmGateway: true, piHarness: true, manifestRuntime });
    assert.deepEqual(choice, { id: 'pi', reason: 'project-flag' });
  }
});

test('A6 A13 without the flag the manifest decides, and without a runtime it is opencode', () => {
  for (const manifestRuntime of MANIFEST_RUNTIMES) {
    const choice = selectHarness({ llmGateway: true, piHarness: false, manifestRuntime });
    assert.deepEqual(choice, { id: manifestRuntime, reason: 'manifest-runtime' });
  }
  const choice = selectHarness({ llmGateway: true, piHarness: false, manifestRuntime: undefined });
  assert.deepEqual(choice, { id: 'opencode', reason: 'default' });
});
