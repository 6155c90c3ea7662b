// What a person is told who waits for a session in which nothing runs.
import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { SessionView } from '#schema/rest/sessions.ts';
import { startCommand } from '#test/support/command-line.ts';
import { aPromptView, aSessionView, MADE_AT } from '#test/support/rest-views.ts';
import { until } from '#test/support/until.ts';

const SESSION = '/v1/namespaces/team/sessions/fix';

const view = (ready: 'True' | 'False', reason: string, message: string): SessionView => ({
  ...aSessionView,
  phase: ready === 'True' ? 'Running' : 'Suspended',
  ready,
  readyReason: reason,
  message,
  spec: { projectRef: { name: 'shop' } },
  status: { conditions: [{ type: 'Ready', status: ready, reason, message }] },
});

const event = (seq: number, type: string, data: object): string =>
  `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify({
    id: `evt_${seq}`,
    seq,
    sessionUid: 'u',
    runId: null,
    threadId: 'root',
    turnId: 't',
    type,
    at: MADE_AT,
    hidden: false,
    causedBy: null,
    data: { promptId: 'prm_1', ...data },
  })}\n\n`;

test('a prompt that waits for a budget says so, with what to do, and what becomes of the session, each once', async () => {
  const log = new Set<ServerResponse>();
  let state = view('False', 'Starting', 'it is being made');
  const server = createServer((request, response) => {
    request.resume();
    const path = (request.url ?? '').replace(SESSION, '').split('?')[0];
    if (path === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('event: hello\ndata: {"sessionUid":"u","firstSeq":0,"headSeq":0}\n\n');
      log.add(response);
      response.once('close', () => log.delete(response));
      return;
    }
    response.writeHead(path === '/prompts' ? 202 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(path === '/prompts' ? aPromptView : state));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { BEEUNI_SERVER: url, BEEUNI_TOKEN: 'x', BEEUNI_NAMESPACE: 'team' };
  const call = startCommand(['sessions', 'chat', 'fix', 'Go.'], { env });
  try {
    await until('it says where it is', () => call.err().includes('-- session fix: Suspended (Starting)\n'));
    state = view('False', 'BudgetReached', 'the budget is used up');
    await until('it says why', () =>
      call.err().includes('-- session fix waits: the budget is used up\n--   raise the'),
    );
    assert.equal(call.err().split('-- session fix').length, 3, call.err());
    for (const each of log) {
      each.write(event(1, 'turn.started', { messageId: 'm', agent: null, model: null, harness: 'pi' }));
      each.write(
        event(2, 'turn.ended', { outcome: 'Succeeded', code: null, message: null, summary: null, commit: null }),
      );
    }
    assert.equal((await call.done).code, 0, call.err());
  } finally {
    for (const _ of [1, 2]) call.interrupt();
    server.closeAllConnections();
    server.close();
  }
});
