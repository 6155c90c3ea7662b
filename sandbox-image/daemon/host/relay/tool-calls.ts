// Tool calls of a harness that runs in a process of its own: one route of the loopback relay, with the bridge token.
// Must not know tools or harnesses. Source: A50, A110.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { ToolHost } from '#daemon/harness/contract/tools.ts';

/** Path of the calls on the relay; the tool's name follows. */
export const TOOLS_PATH = '/beeuni/tools';

const body = z.object({
  arguments: z.unknown(),
  threadId: z.string().max(128),
  callId: z.string().max(128),
  agent: z.string().max(128).nullable(),
});
const MAX_BODY_BYTES = 8_388_608;

/** Answers with JSON, unless the caller is gone. */
export const send = (response: ServerResponse, status: number, value: unknown): void => {
  if (response.destroyed) return;
  const text = JSON.stringify(value);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
};

const refuse = (response: ServerResponse, status: number, message: string): void =>
  send(response, status, { kind: 'failed', message });

/** The body as JSON; undefined for one that is too large or no JSON. */
export const readBody = async (request: IncomingMessage): Promise<unknown> => {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    // What is too much is read to its end all the same: a connection that is cut would fail the call after this one.
    if (size <= MAX_BODY_BYTES) parts.push(part);
  }
  if (size > MAX_BODY_BYTES) return undefined;
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    return undefined;
  }
};

/** Answers one call: 503 before there are tools, 404 for a tool that is not loaded, 403 for one that the agent may not use. */
export const serveToolCall = async (
  request: IncomingMessage,
  response: ServerResponse,
  name: string,
  tools: ToolHost | undefined,
): Promise<void> => {
  if (request.method !== 'POST') return refuse(response, 405, 'tools are called by POST');
  if (tools === undefined) return refuse(response, 503, 'the tools are not loaded yet');
  const call = body.safeParse(await readBody(request));
  if (!call.success) return refuse(response, 400, 'this is no tool call');
  const access = tools.access(name, call.data.agent);
  if (access === 'unknown') return refuse(response, 404, `there is no tool "${name.slice(0, 64)}"`);
  if (access === 'forbidden') return refuse(response, 403, `the agent may not use the tool "${name}"`);
  const abort = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) abort.abort();
  });
  send(response, 200, await tools.call({ name, ...call.data, arguments: call.data.arguments }, abort.signal));
};
