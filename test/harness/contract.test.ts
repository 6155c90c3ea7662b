// The contract suite on both real harnesses, with the daemon as a process of this machine; test/e2e runs the same suite in
// containers of the sandbox image, and where both tiers run only that one does. The table of docs/reference/harness-matrix.md is what the harnesses answered here;
// `node --test --test-update-snapshots` writes it anew.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { whyNoPi } from '#test/support/pi.ts';
import { MATRIX_PAGE, matrixOf } from './contract/matrix.ts';
import type { Offers } from './contract/people-cases.ts';
import { contractSuite } from './contract/suite.ts';
import type { HarnessId } from './contract/world.ts';

const skip = whyNoOpencode() ?? whyNoPi() ?? false;
const found = new Map<HarnessId, Offers>();

for (const harness of ['opencode', 'pi'] as const) {
  contractSuite(harness, { skip, found: (offers) => found.set(harness, offers) });
}

describe('the table of both harnesses', { skip }, () => {
  it('A30 A37 says what each harness answered', (t) => {
    const [opencode, pi] = [found.get('opencode'), found.get('pi')];
    assert.ok(opencode !== undefined && pi !== undefined, 'both were asked');
    t.assert.fileSnapshot(matrixOf(opencode, pi), fileURLToPath(MATRIX_PAGE), { serializers: [String] });
  });
});
