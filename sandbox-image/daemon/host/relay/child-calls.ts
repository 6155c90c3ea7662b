// Calls of subagents in a harness that runs in a process of its own: besides their own rules, which the harness applies,
// those of the agent that started them count. One route of the loopback relay. Must not know harnesses. Source: A127, J7.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Verdict } from '#daemon/harness/judge/permissions.ts';
import { readBody, send } from './tool-calls.ts';

/** Path on the relay. */
export const JUDGE_PATH = '/beeuni/judge';

const body = z.object({
  tool: z.string().max(128),
  arguments: z.record(z.string(), z.unknown()),
  threadId: z.string().max(128),
  callId: z.string().max(128),
  agent: z.string().max(128).nullable(),
  parentAgent: z.string().max(128).nullable(),
});

/** One call of a subagent. `agent`: its own; `parentAgent`: of the conversation that started it; null: not known. */
export type ChildCall = z.output<typeof body>;

/** Judges one call. Never rejects. */
export type JudgeChildCall = (call: ChildCall, signal: AbortSignal) => Promise<Verdict>;

/** Answers with the verdict; what cannot be judged is not allowed. */
export const serveChildCall = async (
  request: IncomingMessage,
  response: ServerResponse,
  judge: JudgeChildCall | undefined,
): Promise<void> => {
  const call = body.safeParse(await readBody(request));
  if (judge === undefined || !call.success) {
    send(response, 400, { allowed: false, reason: 'this call of a subagent cannot be judged' });
    return;
  }
  const abort = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) abort.abort();
  });
  send(response, 200, await judge(call.data, abort.signal));
};
