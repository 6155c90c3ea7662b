// The claim: asked again for as long as that can help.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ConflictError, NotFoundError, UnavailableError, UnsupportedError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import type { ClaimAnswer } from '#schema/wire/claim.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { claimSession, endOfRefusedClaim } from './claim.ts';
import type { Claimed } from './control-plane.ts';

const answer = { state: 'claimed', claim: { generation: 4 } as ClaimAnswer } as const;

const aClaim = (answers: readonly (Claimed | Error)[]) => {
  const clock = manualClock();
  const left = [...answers];
  const claim = async (): Promise<Claimed> => {
    const next = left.shift() ?? answer;
    if (next instanceof Error) throw next;
    return next;
  };
  const log = createLogger({ level: 'error', write: () => {} });
  const done = claimSession(
    { claim, clock, random: () => 1, log },
    { daemonVersion: '0', adapters: [] },
    new AbortController().signal,
  );
  done.catch(() => {});
  return { done, clock, left };
};

describe('claimSession', () => {
  it('D6 asks again while there is no session and while the control plane is away', async () => {
    const { done, clock } = aClaim([
      { state: 'wait', reason: 'not_assigned' },
      new UnavailableError('control_plane_unavailable', 'gone'),
      { state: 'wait', reason: 'project_not_synced' },
    ]);
    await clock.advance(30_000);
    assert.equal((await done).generation, 4);
  });

  it('D7 gives up when a newer daemon exists or no adapter does', async () => {
    await assert.rejects(aClaim([new ConflictError('superseded', 'newer')]).done, ConflictError);
    await assert.rejects(aClaim([new UnsupportedError('harness_not_available', 'none')]).done, UnsupportedError);
  });

  it('gives up when the base branch does not exist, so that the Session can say so', async () => {
    const error = new NotFoundError('branch_not_found', 'no branch nope');
    await assert.rejects(aClaim([error]).done, /no branch nope/);
    assert.equal(endOfRefusedClaim(error), 'branch_not_found');
  });
});
