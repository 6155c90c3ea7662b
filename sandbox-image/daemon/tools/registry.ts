// The tool host: which tools are loaded, who may use them, and the one path of every call. A call ends exactly once, with
// data. Must not know harnesses, nor any single tool. Source: A40, A44, A108 to A111, house plan §7 item 5.
import { asBeeuniError, errorChain } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import {
  permissionQuestionOf,
  type ToolCall,
  type ToolHost,
  type ToolOutcome,
} from '#daemon/harness/contract/tools.ts';
import { isAlwaysDenied } from '#schema/rules/permission.ts';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import type { CutOutput } from './cut-output.ts';
import { type Tool, ToolError, type ToolResult } from './define-tool.ts';

/** What the host is made from. `sessionAgent`: the agent of the session. */
export type ToolHostPorts = Readonly<{
  tools: readonly Tool[];
  agents: readonly CompiledAgent[];
  sessionAgent: string | null;
  cutOutput: CutOutput;
  log: Logger;
}>;

/** Largest metadata that is passed on. Units: characters of JSON. */
const MAX_METADATA = 65_536;
const MAX_MESSAGE = 4_096;

const failed = (message: string): ToolOutcome => ({ kind: 'failed', message: message.slice(0, MAX_MESSAGE) });

/** Names that an agent is granted and that no rule of its own denies as a whole. */
const grantedTo = (agent: CompiledAgent, names: readonly string[]): ReadonlySet<string> => {
  const { tools } = agent;
  const granted = tools === 'all' ? names : tools === 'none' ? [] : names.filter((name) => tools.includes(name));
  return new Set(
    granted.filter((name) => !isAlwaysDenied(agent.permission, permissionQuestionOf(name, {}, false).keys)),
  );
};

const metadataOf = (result: ToolResult): Readonly<Record<string, unknown>> =>
  result.metadata !== undefined && JSON.stringify(result.metadata).length <= MAX_METADATA ? result.metadata : {};

/** Makes the host. A later tool of a name that is taken is left out. */
export const createToolHost = (ports: ToolHostPorts): ToolHost => {
  const { log } = ports;
  const tools = new Map<string, Tool>();
  for (const tool of ports.tools) {
    if (tools.has(tool.spec.name)) log.warn('a tool of this name is loaded already', { tool: tool.spec.name });
    else tools.set(tool.spec.name, tool);
  }
  const names = [...tools.keys()];
  const own = new Map(ports.agents.map((agent) => [agent.name, grantedTo(agent, names)]));
  const everything: ReadonlySet<string> = new Set(names);
  const ofSession = (ports.sessionAgent === null ? undefined : own.get(ports.sessionAgent)) ?? everything;
  const visible = new Map(
    ports.agents.map(({ name, mode }) => {
      const granted = own.get(name) ?? everything;
      // What only ever works for another agent gets no more than that one has.
      return [
        name,
        mode === 'subagent' ? new Set([...granted].filter((tool) => ofSession.has(tool))) : granted,
      ] as const;
    }),
  );

  const visibleTo: ToolHost['visibleTo'] = (agent) => (agent === null ? undefined : visible.get(agent)) ?? ofSession;

  const access: ToolHost['access'] = (name, agent) => {
    if (!tools.has(name)) return 'unknown';
    return visibleTo(agent).has(name) ? 'allowed' : 'forbidden';
  };

  /** The tool's answer, or the signal's if that comes first; a late answer is dropped. */
  const runUntil = (tool: Tool, call: ToolCall, signal: AbortSignal): Promise<ToolResult> =>
    new Promise((resolve, reject) => {
      const onAbort = (): void => reject(new ToolError('the call was aborted'));
      if (signal.aborted) {
        onAbort();
        return;
      }
      signal.addEventListener('abort', onAbort, { once: true });
      const context = { agent: call.agent, threadId: call.threadId, callId: call.callId, signal };
      Promise.resolve()
        .then(() => tool.run(call.arguments, context))
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', onAbort));
    });

  const call: ToolHost['call'] = async (asked, signal) => {
    const { name, agent } = asked;
    const tool = tools.get(name);
    if (tool === undefined) return failed(`there is no tool "${name.slice(0, 64)}"`);
    if (access(name, agent) !== 'allowed') {
      log.warn('a tool call was refused', { tool: name, agent });
      return failed(`the agent ${agent ?? ''} may not use the tool "${name}"`);
    }
    try {
      const result = await runUntil(tool, asked, signal);
      const output = await ports.cutOutput(result.output);
      const metadata = metadataOf(result);
      return { kind: 'completed', title: result.title, output, metadata, attachments: result.attachments ?? [] };
    } catch (error) {
      if (error instanceof ToolError) return failed(error.message);
      const known = asBeeuniError(error);
      log.warn('a tool call failed', { tool: name, chain: errorChain(error) });
      return failed(known === undefined || known.group === 'bug' ? `the tool "${name}" broke` : known.message);
    }
  };

  return { specs: [...tools.values()].map((tool) => tool.spec), visibleTo, access, call };
};
