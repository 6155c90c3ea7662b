// The route by which a harness in a process of its own calls tools: what it refuses, and that a closed call is an aborted one.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { ToolCall, ToolHost } from '#daemon/harness/contract/tools.ts';
import { noTools } from '#test/support/tool-host.ts';
import { until } from '#test/support/until.ts';
import { serveToolCall } from './tool-calls.ts';

describe('serveToolCall', () => {
  let server: Server;
  let url: string;
  let tools: ToolHost | undefined;
  let seen: Readonly<{ call: ToolCall; signal: AbortSignal }> | undefined;

  before(async () => {
    server = createServer((request, response) => void serveToolCall(request, response, 'show', tools));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  const good = { arguments: { a: 1 }, threadId: 'ses_1', callId: 'call_1', agent: 'dev' };
  const post = async (body: unknown, init: RequestInit = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await fetch(url, { method: 'POST', body: text, ...init });
    return [answer.status, await answer.json()] as const;
  };
  const hanging: ToolHost = {
    ...noTools,
    access: () => 'allowed',
    call: (call, signal) => {
      seen = { call, signal };
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ kind: 'failed', message: 'aborted' }));
      });
    },
  };

  it('A110 answers 503 before there are tools, 404 for an unknown one, 403 for one that is not allowed', async () => {
    tools = undefined;
    assert.equal((await post(good))[0], 503);
    tools = noTools;
    assert.deepEqual(await post(good), [404, { kind: 'failed', message: 'there is no tool "show"' }]);
    tools = { ...noTools, access: () => 'forbidden' };
    assert.deepEqual(await post(good), [403, { kind: 'failed', message: 'the agent may not use the tool "show"' }]);
  });

  it('A110 takes a call as it is and gives back its outcome, also a failure, with 200', async () => {
    tools = { ...hanging, call: async (call) => ({ kind: 'failed', message: JSON.stringify(call) }) };
    const [status, body] = await post(good);
    assert.deepEqual([status, JSON.parse((body as { message: string }).message)], [200, { name: 'show', ...good }]);
  });

  it('refuses what is no call: no JSON, missing fields, too much', async () => {
    tools = hanging;
    for (const body of ['', '{', '[]', JSON.stringify({ arguments: {} }), `"${'x'.repeat(9_000_000)}"`]) {
      assert.equal((await post(body).catch(() => [400]))[0], 400, body.slice(0, 20));
    }
    assert.equal((await fetch(url)).status, 405);
  });

  it('FB6 aborts the call when the harness closes it', async () => {
    tools = hanging;
    seen = undefined;
    const abort = new AbortController();
    const asked = post(good, { signal: abort.signal });
    asked.catch(() => {});
    await until('the call is made', () => seen !== undefined);
    abort.abort();
    await until('it is aborted', () => seen?.signal.aborted === true);
  });
});
