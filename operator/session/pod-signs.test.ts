import assert from 'node:assert/strict';
import { it } from 'node:test';
import { failureOf } from './pod-signs.ts';

const ended = (message: string, exitCode = 1) =>
  failureOf({
    name: 'p',
    deleting: false,
    phase: 'Failed',
    container: { state: 'terminated', exitCode, reason: 'Error', message },
  } as unknown as Parameters<typeof failureOf>[0]);

it('10-kubernetes §4 takes the category from the first word of the daemon, and names the rest DaemonExit', () => {
  const categories = (['harness_mismatch', 'data_mount', 'branch_not_found', 'fault'] as const).map(
    (word) => ended(`${word}: why`)?.category,
  );
  assert.deepEqual(categories, ['HarnessBoot', 'VolumeAttach', 'CloneFailed', 'DaemonExit']);
  assert.match(ended('drained: ended by SIGTERM', 0)?.message ?? '', /the node ended the sandbox.*workspace\.size/);
  assert.match(ended('branch_not_found: the repository has no branch nope', 8)?.message ?? '', /has no branch nope/);
});
