// What a session of a project would run if it started now, from the project's flags and its last valid manifest.
// Must not know where facts are kept. Source: 00-product §4, J1, J2.

import type { Project } from '#schema/resources/project.ts';
import { MANIFEST_RUNTIMES, type ManifestRuntime } from '#schema/resources/sandbox-fields.ts';
import { effectiveFlags, type PlatformFlags } from '#schema/rules/effective-flags.ts';
import { type HarnessChoice, selectHarness } from '#schema/rules/select-harness.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';

/** What the choice needs. */
export type ChooseHarnessPorts = Readonly<{
  findProjectFact: (projectUid: string) => Promise<ProjectFact | undefined>;
  platformFlags: PlatformFlags;
}>;

/** The choice for a project now. Errors: UnavailableError. */
export type ChooseHarness = (project: Project) => Promise<HarnessChoice>;

const runtimeOf = (text: string | null | undefined): ManifestRuntime | undefined =>
  MANIFEST_RUNTIMES.find((runtime) => runtime === text);

/** Makes the function. */
export const makeChooseHarness =
  (ports: ChooseHarnessPorts): ChooseHarness =>
  async (project) => {
    const fact = await ports.findProjectFact(project.metadata.uid);
    const flags = effectiveFlags(project.spec.features, ports.platformFlags);
    return selectHarness({
      llmGateway: flags.llm_gateway.value,
      piHarness: flags.pi_harness.value,
      manifestRuntime: runtimeOf(fact?.manifest.lastValid?.runtime ?? project.status?.manifest?.runtime),
    });
  };
