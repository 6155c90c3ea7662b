// Level 1 with the flags of a Project and the runtime of its last valid manifest. Pure.
// Must not know Sessions: a Project shows the same answer as what a start now would run. Source: 00-product §4, J1.
import type { Installation } from '#schema/installation.ts';
import type { ProjectSpec } from '#schema/resources/project.ts';
import { MANIFEST_RUNTIMES } from '#schema/resources/sandbox-fields.ts';
import { effectiveFlags } from '#schema/rules/effective-flags.ts';
import { type HarnessChoice, selectHarness } from '#schema/rules/select-harness.ts';

/** The harness of a session that starts now. `manifestRuntime` is null when the manifest names none that counts. */
export const chooseHarness = (
  features: ProjectSpec['features'],
  manifestRuntime: string | null,
  installation: Installation,
): HarnessChoice => {
  const flags = effectiveFlags(features, installation.features);
  return selectHarness({
    llmGateway: flags.llm_gateway.value,
    piHarness: flags.pi_harness.value,
    manifestRuntime: MANIFEST_RUNTIMES.find((runtime) => runtime === manifestRuntime),
  });
};
