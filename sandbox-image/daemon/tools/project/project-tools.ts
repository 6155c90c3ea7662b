// The project's own tools: each module of the manifest is described once; what does not load is left out and said so.
// Must not know harnesses. Source: A45, A94, A106 to A109.
import { join } from 'node:path';
import type { Logger } from '#base/log.ts';
import type { ClaimedProjectTool } from '#schema/wire/claim.ts';
import { type Tool, ToolError } from '../define-tool.ts';
import type { RunModule } from './run-module.ts';

/** What project tools are made from. */
export type ProjectToolPorts = Readonly<{
  tools: readonly ClaimedProjectTool[];
  /** Copy of the repository's files at the base commit, as far as tools need them. */
  sourceDirectory: string;
  workspace: string;
  sessionUid: string;
  run: RunModule;
  /** Environment without any secret, for a module that is only described. */
  plainEnvironment: Readonly<Record<string, string>>;
  /** Environment of a call: that, and what the agent was granted at this moment. */
  callEnvironment: () => Readonly<Record<string, string>>;
  log: Logger;
}>;

/** Units: milliseconds. */
const DESCRIBE_LIMIT_MS = 15_000;
const CALL_LIMIT_MS = 600_000;
const AT_ONCE = 2;

const describe = async (ports: ProjectToolPorts, tool: ClaimedProjectTool, signal: AbortSignal): Promise<Tool> => {
  const { workspace, sessionUid, run } = ports;
  const module = join(ports.sourceDirectory, tool.path);
  const shared = { module, cwd: workspace };
  const described = await run({
    ...shared,
    environment: ports.plainEnvironment,
    timeoutMs: DESCRIBE_LIMIT_MS,
    signal,
  });
  if (described.kind !== 'described')
    throw new ToolError('message' in described ? described.message : 'it runs at once');
  return {
    spec: { name: tool.name, description: described.description, parameters: described.parameters },
    run: async (args, context) => {
      const answer = await run({
        ...shared,
        call: { arguments: args, sessionId: sessionUid, agent: context.agent, directory: workspace },
        environment: ports.callEnvironment(),
        timeoutMs: CALL_LIMIT_MS,
        signal: context.signal,
      });
      if (answer.kind === 'completed') return { title: tool.name, output: answer.output };
      throw new ToolError('message' in answer ? answer.message : 'it gave no answer');
    },
  };
};

/** Loads the tools, in the manifest's order. Never rejects. */
export const loadProjectTools = async (ports: ProjectToolPorts, signal: AbortSignal): Promise<readonly Tool[]> => {
  const loaded: (Tool | undefined)[] = Array(ports.tools.length).fill(undefined);
  const waiting = [...ports.tools.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [at, tool] = next;
      try {
        loaded[at] = await describe(ports, tool, signal);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        ports.log.warn('a tool of the project is left out', { tool: tool.name, path: tool.path, reason });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return loaded.filter((tool) => tool !== undefined);
};
