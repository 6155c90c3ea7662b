// An agent file: YAML frontmatter with the agent's behaviour, then its system prompt.
// It must not know the manifest that names it. Source: A99 to A101.
import { z } from 'zod';
import { MODEL_NAME_PATTERN } from '../primitives.ts';

export const PERMISSION_ACTIONS = ['ask', 'allow', 'deny'] as const;
export const AGENT_MODES = ['primary', 'subagent', 'all'] as const;
export type AgentMode = (typeof AGENT_MODES)[number];
const COLORS = ['primary', 'secondary', 'accent', 'success', 'warning', 'error', 'info'];

/** Permission keys that take an action only. Source: A101. */
export const ACTION_ONLY_KEYS = ['todowrite', 'question', 'webfetch', 'websearch', 'doom_loop'] as const;

const action = z.enum(PERMISSION_ACTIONS);
const rule = z.union(
  [action, z.record(z.string().min(1).max(512), action)],
  'must be ask, allow, deny, or a map from patterns to one of them',
);

/** What an agent may do: one action for everything, or rules by capability or tool name. */
export const PermissionSchema = z.union(
  [action, z.record(z.string().min(1).max(64), rule)],
  'must be ask, allow, deny, or a map from tools to rules of them',
);
export type Permission = z.output<typeof PermissionSchema>;

/** Frontmatter of an agent file; keys that it does not know are ignored with a warning. */
export const AgentFrontmatterSchema = z.object({
  description: z.string().max(1024).optional().describe('When to use the agent.'),
  model: z
    .string()
    .max(256)
    .regex(MODEL_NAME_PATTERN, 'must be provider/model')
    .optional()
    .describe('Model as provider/model.'),
  mode: z.enum(AGENT_MODES).optional().describe('primary, subagent or all. Default all.'),
  variant: z.string().max(64).optional().describe("One of the model's reasoning tiers."),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  options: z.record(z.string(), z.unknown()).optional().describe('Provider options; ignored by pi.'),
  color: z
    .string()
    .regex(new RegExp(`^(#[0-9a-fA-F]{6}|${COLORS.join('|')})$`), `must be #rrggbb or one of ${COLORS.join(', ')}`)
    .optional(),
  steps: z.int().min(1).max(10_000).optional().describe('Most model steps of a turn.'),
  hidden: z.boolean().optional(),
  disable: z.boolean().optional(),
  permission: PermissionSchema.optional(),
});
export type AgentFrontmatter = z.output<typeof AgentFrontmatterSchema>;

/** Keys of older formats, with what to write instead. Source: A100. */
export const RENAMED_FRONTMATTER: Readonly<Record<string, string>> = { tools: 'permission', maxSteps: 'steps' };

/** The parts of an agent file. `firstLine` is the line of the file on which the frontmatter begins. */
export type AgentFileParts = Readonly<{ frontmatter: string; firstLine: number; prompt: string }>;

/** Splits an agent file; without a first line `---` all of it is the prompt. Undefined: the frontmatter is not closed. */
export function splitAgentFile(text: string): AgentFileParts | undefined {
  const clean = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const lines = clean.split(/\r?\n/);
  if (lines[0]?.trimEnd() !== '---') return { frontmatter: '', firstLine: 1, prompt: clean.trim() };
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === '---');
  if (end === -1) return undefined;
  return {
    frontmatter: lines.slice(1, end).join('\n'),
    firstLine: 2,
    prompt: lines
      .slice(end + 1)
      .join('\n')
      .trim(),
  };
}
