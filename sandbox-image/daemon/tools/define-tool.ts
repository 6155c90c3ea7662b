// What one tool is: its description for the model, the shape of its arguments, and what it does.
// Must not know harnesses, agents or any single tool. Source: A50, A106.
import { z } from 'zod';
import type { ToolAttachment, ToolSpec } from '#daemon/harness/contract/tools.ts';

/** Who calls, and what ends the call. */
export type ToolContext = Readonly<{ agent: string | null; threadId: string; callId: string; signal: AbortSignal }>;

/** What a tool gives back. `output` may be long; the registry cuts it. */
export type ToolResult = Readonly<{
  title: string;
  output: string;
  metadata?: Readonly<Record<string, unknown>>;
  attachments?: readonly ToolAttachment[];
}>;

/** A tool that can be called with whatever a model wrote. `run` throws ToolError for what the model should read. */
export type Tool = Readonly<{
  spec: ToolSpec;
  run: (args: unknown, context: ToolContext) => Promise<ToolResult>;
}>;

/** A failure that the model is told in these words. Never holds a secret. */
export class ToolError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The words for arguments that do not fit, each with the place of the problem. */
const wordIssues = (issues: readonly Readonly<{ path: readonly PropertyKey[]; message: string }>[]): string =>
  issues
    .slice(0, 8)
    .map(({ path, message }) => `${path.length === 0 ? 'the arguments' : path.map(String).join('.')}: ${message}`)
    .join('; ');

/** Makes a tool whose arguments are checked against `input` before `run` sees them. */
export const defineTool = <S extends z.ZodObject>(
  tool: Readonly<{
    name: string;
    description: string;
    input: S;
    run: (args: z.output<S>, context: ToolContext) => Promise<ToolResult>;
  }>,
): Tool => {
  const { $schema: _, ...parameters } = z.toJSONSchema(tool.input, { target: 'draft-7', io: 'input' });
  return {
    spec: { name: tool.name, description: tool.description, parameters },
    run: (args, context) => {
      const parsed = tool.input.safeParse(args);
      if (!parsed.success) {
        throw new ToolError(`the arguments of ${tool.name} do not fit: ${wordIssues(parsed.error.issues)}`);
      }
      return tool.run(parsed.data, context);
    },
  };
};
