// The contract between a session and its harness, one case per statement, for one harness in one place. The order matters
// little: each case leaves the session idle; the one that kills the daemon comes last.
import { after, before, describe } from 'node:test';
import type { Launch } from '#test/support/daemon-process.ts';
import { capabilityCases, type Offers, peopleCases } from './people-cases.ts';
import { projectCases } from './project-cases.ts';
import { resumeCases, turnCases } from './turn-cases.ts';
import { type HarnessId, makeWorld, type World } from './world.ts';

/** Registers the suite. `launch`: where daemons run; `found` gets what the harness answered to each optional verb. */
export const contractSuite = (
  harness: HarnessId,
  options: Readonly<{
    skip: string | false;
    launch?: () => Launch | undefined;
    found: (offers: Offers) => void;
  }>,
): void => {
  describe(`the contract on ${harness}`, { skip: options.skip, timeout: 900_000 }, () => {
    let world: World | undefined;
    const current = (): World => {
      if (world === undefined) throw new Error('the session is not started');
      return world;
    };
    before(async () => {
      world = await makeWorld(harness, options.launch?.());
    });
    after(async () => world?.stop());
    turnCases(current);
    projectCases(current);
    peopleCases(current);
    capabilityCases(current, options.found);
    resumeCases(current);
  });
};
