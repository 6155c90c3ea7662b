// Level 1: which harness a session runs. The one pure function that operator, control plane and tests agree on.
// It must not know how flags became effective, nor what a harness is.
import type { HarnessReason, ManifestRuntime } from '../resources/sandbox-fields.ts';

/** Effective flags, and `runtime` of the last valid manifest (undefined when absent or when the manifest is not version 2). */
export type HarnessInputs = Readonly<{
  llmGateway: boolean;
  piHarness: boolean;
  manifestRuntime: ManifestRuntime | undefined;
}>;

/** The chosen harness with its reason; `id` is one of the built-in harnesses here, and an open string elsewhere. */
export type HarnessChoice = Readonly<{ id: ManifestRuntime; reason: HarnessReason }>;

/** The harness of a session that starts, restarts or resumes now; first match wins. Source: 00-product §4, A6 to A8, J1. */
export function selectHarness(inputs: HarnessInputs): HarnessChoice {
  if (!inputs.llmGateway) return { id: 'opencode', reason: 'gateway-off' };
  if (inputs.piHarness) return { id: 'pi', reason: 'project-flag' };
  if (inputs.manifestRuntime !== undefined) return { id: inputs.manifestRuntime, reason: 'manifest-runtime' };
  return { id: 'opencode', reason: 'default' };
}
