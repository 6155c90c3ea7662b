// The contract suite in a real sandbox: the daemon and both harness programs in containers of the sandbox image, with the
// user, mounts, environment, limits and seccomp profile of the operator's pod.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { skipReason } from '#test/cluster/prerequisites.ts';
import { MATRIX_PAGE, matrixOf } from '#test/harness/contract/matrix.ts';
import type { Offers } from '#test/harness/contract/people-cases.ts';
import { contractSuite } from '#test/harness/contract/suite.ts';
import type { HarnessId } from '#test/harness/contract/world.ts';
import { openSandboxImage } from '#test/support/sandbox-container.ts';

const skip = skipReason('node', 'e2e');
const found = new Map<HarnessId, Offers>();

describe('the sandbox image', { skip, timeout: 2_400_000 }, () => {
  let image: Awaited<ReturnType<typeof openSandboxImage>> | undefined;
  before(async () => {
    image = await openSandboxImage((line) => console.log(`# ${line}`));
  });
  after(() => image?.remove());
  for (const harness of ['opencode', 'pi'] as const) {
    contractSuite(harness, {
      skip: false,
      launch: () => image?.launch,
      found: (offers) => found.set(harness, offers),
    });
  }
  it('A30 A37 answers in a sandbox what the table of both harnesses says', () => {
    const [opencode, pi] = [found.get('opencode'), found.get('pi')];
    assert.ok(opencode !== undefined && pi !== undefined, 'both were asked');
    assert.equal(matrixOf(opencode, pi), readFileSync(MATRIX_PAGE, 'utf8'));
  });
});
