// Judges calls of subagents by the rules of the agent above them, for a harness that applies only the subagent's own.
// What both want asked is asked once, by the harness. Must not know harnesses or HTTP. Source: A127, J7.
import type { HumanAnswer, HumanRequest } from '#daemon/harness/contract/adapter.ts';
import { rulesOf, type Skill } from '#daemon/harness/contract/skills.ts';
import { createPermissions } from '#daemon/harness/judge/permissions.ts';
import { realPath } from '#daemon/harness/judge/real-path.ts';
import { decidePermission } from '#schema/rules/permission.ts';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import type { JudgeChildCall } from './relay/child-calls.ts';

/** What the judge is made from. `agent`: of the session, for a conversation whose agent nobody named. */
export type JudgePorts = Readonly<{
  agents: readonly CompiledAgent[];
  agent: string | null;
  workspace: string;
  skills: readonly Skill[];
  tools: readonly Readonly<{ name: string }>[];
  ask: (request: HumanRequest, signal: AbortSignal) => Promise<HumanAnswer>;
}>;

const ALLOWED: HumanAnswer = { kind: 'permission', reply: 'once', message: null };

/** The judge. */
export const makeJudge = (ports: JudgePorts): JudgeChildCall => {
  const find = (name: string | null) => ports.agents.find((agent) => agent.name === name);
  const ownTools = new Set(ports.tools.map(({ name }) => name));
  return async (call, signal) => {
    const above = rulesOf(find(call.parentAgent) ?? find(ports.agent));
    const own = rulesOf(find(call.agent));
    const isAskedAnyway = ({ data }: HumanRequest): boolean =>
      decidePermission(own, {
        keys: [String(data['permission'])],
        subjects: Array.isArray(data['patterns']) ? data['patterns'].map(String) : [],
      }) === 'ask';
    const permissions = createPermissions({
      workspace: ports.workspace,
      realPath,
      skills: ports.skills,
      ownTools,
      threadId: call.threadId,
      rules: () => [above],
      ask: async (request) => (isAskedAnyway(request) ? ALLOWED : ports.ask(request, signal)),
      messageOf: () => undefined,
    });
    return permissions.judge({ tool: call.tool, callId: call.callId, input: call.arguments }, signal);
  };
};
