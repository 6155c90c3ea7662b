// What an agent may do with images: the three modes of vision and how many screenshots keep their pixels.
// Source: 40-settings B7 to B11. Must not know where a policy is kept or how it is obeyed.
import { z } from 'zod';

/** Most screenshots that may keep their pixels; 0 is no limit. */
export const MAX_KEEP_IMAGES = 100;

/** The policy of one agent as it counts. */
export const agentPolicy = z.object({
  vision: z.boolean().describe('false: no image reaches the model, and its image tools are denied'),
  vision_describe: z.boolean().describe('true: images are replaced by a description'),
  vision_keep_images: z.int().min(0).max(MAX_KEEP_IMAGES).describe('screenshots that keep their pixels; 0 is no limit'),
});

/** See agentPolicy. */
export type AgentPolicy = z.output<typeof agentPolicy>;
/** Name of one field. */
export type AgentPolicyField = keyof AgentPolicy;
/** Every field, in order. */
export const AGENT_POLICY_FIELDS = [
  'vision',
  'vision_describe',
  'vision_keep_images',
] as const satisfies readonly AgentPolicyField[];

/** The policy of an agent for which nothing is saved: pixels, without limit. Source: B7, B10. */
export const DEFAULT_AGENT_POLICY: AgentPolicy = { vision: true, vision_describe: false, vision_keep_images: 0 };

/** Saved fields of a policy; null is not saved. */
export type SavedPolicy = Readonly<{ [F in AgentPolicyField]: AgentPolicy[F] | null }>;
/** Nothing is saved. */
export const NO_POLICY: SavedPolicy = { vision: null, vision_describe: null, vision_keep_images: null };

/** The modes of vision. Source: B7. */
export const VISION_MODES = ['pixels', 'descriptions', 'off'] as const;
/** One mode. */
export type VisionMode = (typeof VISION_MODES)[number];

/** What a daemon is told of an agent's policy. `keepImages` is 0 in every mode but `pixels`. */
export const agentVision = z.object({ mode: z.enum(VISION_MODES), keepImages: z.int().min(0).max(MAX_KEEP_IMAGES) });
/** See agentVision. */
export type AgentVision = z.output<typeof agentVision>;

/** The mode of a policy; off wins over descriptions. */
export const visionModeOf = ({ vision, vision_describe }: AgentPolicy): VisionMode =>
  vision ? (vision_describe ? 'descriptions' : 'pixels') : 'off';

/** A policy as a daemon is told it. */
export const agentVisionOf = (policy: AgentPolicy): AgentVision => {
  const mode = visionModeOf(policy);
  return { mode, keepImages: mode === 'pixels' ? policy.vision_keep_images : 0 };
};
