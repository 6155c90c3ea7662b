// The loopback relay over real sockets: what passes, what it adds, and what it keeps to itself.
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createLogger } from '#base/log.ts';
import { RELAY_RETRY_HEADER } from '#daemon/harness/contract/relay-retry.ts';
import { type Relay, startRelay } from '#daemon/host/relay/relay.ts';
import { budgetsOfRun } from '#schema/settings/run-settings.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { until } from '#test/support/until.ts';

const TOKEN = 'loopback';
const CREDENTIAL = 'bs_credential';
const MAX_BYTES = 10_000;

type Seen = Readonly<{
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
  closedEarly: Promise<boolean>;
}>;

describe('the relay', { timeout: 60_000 }, () => {
  let upstream: Server;
  let relay: Relay;
  let seen: Seen[] = [];
  let respond: (response: ServerResponse) => void;

  before(async () => {
    upstream = createServer((request, response) => {
      const closedEarly = new Promise<boolean>((resolve) =>
        response.on('close', () => resolve(!response.writableFinished)),
      );
      let body = '';
      request.setEncoding('latin1').on('data', (text: string) => (body += text));
      request.on('end', () => {
        seen.push({
          method: request.method ?? '',
          url: request.url ?? '',
          headers: request.headers,
          body,
          closedEarly,
        });
        respond(response);
      });
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    relay = await startRelay({
      token: TOKEN,
      currentTurnId: () => 'turn-7',
      commandEnvironment: () => ({ KEY: 'value' }),
      log: createLogger({ level: 'error', write: () => {} }),
    });
  });
  beforeEach(() => {
    seen = [];
    respond = (response) => response.end('ok');
    relay.open({
      controlPlaneUrl: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      gatewayPath: '/gateway/v1',
      gitPath: '/sandbox/v1/git/repo.git',
      credential: CREDENTIAL,
      sessionUid: 'uid',
      generation: 3,
      maxModelRequestBytes: MAX_BYTES,
    });
  });
  after(() => {
    relay.stop();
    upstream.close();
    upstream.closeAllConnections();
  });

  const chat = (body: string, headers: Record<string, string> = {}) =>
    fetch(`${relay.origin}/v1/chat/completions`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
    });

  it('D8 swaps the loopback token for the session credential and passes the body on unchanged', async () => {
    const body = '{"model":"a/b","x":"\u00e4"}';
    const answer = await chat(body, {
      'x-evil': '1',
      cookie: 'c',
      'x-beeuni-agent': 'dev',
      'x-beeuni-session': 'forged',
    });
    assert.equal(await answer.text(), 'ok');
    const [call] = seen;
    assert.equal(call?.url, '/gateway/v1/chat/completions');
    assert.equal(Buffer.from(call?.body ?? '', 'latin1').toString('utf8'), body);
    assert.equal(call?.headers.authorization, `Bearer ${CREDENTIAL}`);
    assert.deepEqual(
      [
        call?.headers['x-beeuni-session'],
        call?.headers['x-beeuni-generation'],
        call?.headers['x-beeuni-turn-id'],
        call?.headers['x-beeuni-agent'],
      ],
      ['uid', '3', 'turn-7', 'dev'],
    );
    assert.equal(call?.headers['x-evil'], undefined);
    assert.equal(call?.headers.cookie, undefined);
  });

  it('A79 makes a call again for a harness that asks for it, until it is answered or over, and says how long it waits', async () => {
    const waits: (readonly [number, number])[] = [];
    const clock = manualClock();
    relay.retryCalls({
      clock,
      onWait: (wait) => waits.push([wait.tries, wait.waitMs]),
      onAnswer: () => waits.push([0, 0]),
    });
    const answers = [503, 429, 200];
    respond = (response) => {
      const status = answers[seen.length - 1] ?? 503;
      response.writeHead(status, status === 429 ? { 'retry-after': '9' } : {});
      response.end(status === 200 ? 'ok' : '{}');
    };
    const asked = { [RELAY_RETRY_HEADER]: '1' };
    const answer = chat('{"a":1}', asked);
    await until('it waits', () => waits.length === 1);
    await clock.advance(2_000);
    await until('it waits again', () => waits.length === 2);
    await clock.advance(9_000);
    assert.equal(await (await answer).text(), 'ok');
    assert.deepEqual(waits, [
      [1, 2_000],
      [2, 9_000],
      [0, 0],
    ]);
    assert.deepEqual([...new Set(seen.map(({ body }) => body))], ['{"a":1}']);
    assert.ok(seen.every(({ headers }) => headers[RELAY_RETRY_HEADER] === undefined));

    respond = (response) => response.writeHead(402).end('{}');
    seen = [];
    assert.equal((await chat('{}', asked)).status, 402);
    assert.equal(seen.length, 1);

    respond = (response) => response.writeHead(503).end('{}');
    seen = [];
    assert.equal((await chat('{}')).status, 503);
    assert.equal(seen.length, 1, 'a harness that tries again by itself is told at once');
    seen = [];
    const large = ReadableStream.from([Buffer.alloc(MAX_BYTES), Buffer.alloc(1)]);
    const headers = { authorization: `Bearer ${TOKEN}`, ...asked };
    const url = `${relay.origin}/v1/chat/completions`;
    assert.equal((await fetch(url, { method: 'POST', body: large, duplex: 'half', headers })).status, 413);
    assert.equal(seen.length, 0);
  });

  it('A38 makes no call again for a harness that left', async () => {
    const waits: number[] = [];
    const clock = manualClock();
    relay.retryCalls({ clock, onWait: ({ tries }) => waits.push(tries), onAnswer: () => {} });
    respond = (response) => response.writeHead(503).end('{}');
    const leaving = new AbortController();
    const call = fetch(`${relay.origin}/v1/chat/completions`, {
      method: 'POST',
      body: '{}',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${TOKEN}`, [RELAY_RETRY_HEADER]: '1' },
    });
    await until('it waits', () => waits.length === 1);
    leaving.abort();
    await assert.rejects(call);
    await until('no timer is left', () => clock.pending() === 0);
    await clock.advance(60_000);
    assert.equal(seen.length, 1);
  });

  it('D8 refuses a call without the loopback token, and passes nothing on', async () => {
    for (const authorization of ['', 'Bearer wrong', `Basic ${TOKEN}`, `Bearer ${CREDENTIAL}`]) {
      const answer = await chat('{}', { authorization });
      assert.equal(answer.status, 401, authorization);
    }
    assert.equal((await fetch(`${relay.origin}/env`)).status, 401);
    assert.equal(seen.length, 0);
  });

  it('passes a stream on byte for byte as it comes', async () => {
    const chunks = [
      'data: {"a":"',
      Buffer.from([0xe2, 0x82]),
      Buffer.from([0xac]),
      '"}\r\n\r\n',
      ': comment\n\n',
      'data: [DONE]\n\n',
    ];
    const next = Promise.withResolvers<void>();
    respond = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunks[0]);
      void next.promise.then(() => {
        for (const chunk of chunks.slice(1)) response.write(chunk);
        response.end();
      });
    };
    const answer = await chat('{}');
    assert.equal(answer.headers.get('content-type'), 'text/event-stream');
    const reader = answer.body?.getReader();
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), chunks[0]);
    next.resolve();
    const rest: Buffer[] = [];
    for (;;) {
      const part = await reader?.read();
      if (part?.done !== false) break;
      rest.push(Buffer.from(part.value));
    }
    assert.deepEqual(Buffer.concat(rest), Buffer.concat(chunks.slice(1).map((chunk) => Buffer.from(chunk))));
  });

  it('B13 B19 has for each run the ceiling of its snapshot, and the compiled one without a snapshot', async () => {
    const status = async (bytes: number): Promise<number> => (await chat('x'.repeat(bytes))).status;
    relay.limitModels(10);
    assert.deepEqual([await status(10), await status(11)], [200, 413]);
    relay.limitModels(20);
    assert.deepEqual([await status(20), await status(21)], [200, 413]);
    relay.limitModels(budgetsOfRun(undefined).max_model_request_bytes);
    assert.deepEqual([await status(2_064_384), await status(2_064_385)], [200, 413]);
  });

  it('B13 refuses a request above the ceiling, declared or not, and passes no whole one on', async () => {
    const large = 'x'.repeat(MAX_BYTES + 1);
    const stream = new ReadableStream({
      start: (controller) => {
        for (let at = 0; at < 20; at += 1) controller.enqueue(new TextEncoder().encode('y'.repeat(1_000)));
        controller.close();
      },
    });
    const declared = await chat(large);
    const streamed = await fetch(`${relay.origin}/v1/chat/completions`, {
      method: 'POST',
      body: stream,
      headers: { authorization: `Bearer ${TOKEN}` },
      duplex: 'half',
    } as RequestInit);
    for (const answer of [declared, streamed]) {
      assert.equal(answer.status, 413);
      assert.equal(((await answer.json()) as { error: { code: string } }).error.code, 'request_too_large');
    }
    assert.equal(seen.length, 0);
  });

  it('known-bugs K6 words errors, caps the wait and moves the request id into a header', async () => {
    respond = (response) => {
      response.writeHead(429, { 'retry-after': '86400', 'x-request-id': 'req-500' });
      response.end('{"error":{"message":"request 7f429 slow down"}}');
    };
    const answer = await chat('{}');
    assert.deepEqual(
      [answer.status, answer.headers.get('retry-after'), answer.headers.get('x-request-id')],
      [429, '30', 'req-500'],
    );
    assert.doesNotMatch(await answer.text(), /\d/);
  });

  it('answers a retryable error when the control plane cannot be reached', async () => {
    relay.open({
      controlPlaneUrl: 'http://127.0.0.1:1',
      gatewayPath: '/gateway/v1',
      gitPath: '/git',
      credential: CREDENTIAL,
      sessionUid: 'uid',
      generation: 3,
      maxModelRequestBytes: MAX_BYTES,
    });
    const answer = await chat('{}');
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '2']);
    assert.equal((await fetch(`${relay.origin}/git/info/refs?service=git-upload-pack`)).status, 503);
  });

  it('ends the call behind it when the harness leaves', async () => {
    respond = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
    };
    const leave = new AbortController();
    const answer = await fetch(`${relay.origin}/v1/chat/completions`, {
      method: 'POST',
      body: '{}',
      headers: { authorization: `Bearer ${TOKEN}` },
      signal: leave.signal,
    });
    await answer.body?.getReader().read();
    leave.abort();
    assert.equal(await seen[0]?.closedEarly, true);
  });

  it('D9 passes git on without asking for anything, with the credential added, and only git', async () => {
    await fetch(`${relay.origin}/git/info/refs?service=git-upload-pack`, { headers: { 'git-protocol': 'version=2' } });
    assert.equal(seen[0]?.url, '/sandbox/v1/git/repo.git/info/refs?service=git-upload-pack');
    assert.equal(seen[0]?.headers.authorization, `Bearer ${CREDENTIAL}`);
    assert.equal(seen[0]?.headers['git-protocol'], 'version=2');
    for (const path of [
      '/git/../claim',
      '/git/config',
      '/git/info/refs',
      '/git/info/refs?service=git-upload-archive',
      '/sandbox/v1/claim',
      '/',
    ]) {
      assert.equal((await fetch(relay.origin + path)).status, 404, path);
    }
    assert.equal(seen.length, 1);
  });

  it('A180 tells the environment of commands to whoever has the token', async () => {
    const answer = await fetch(`${relay.origin}/env`, { headers: { authorization: `Bearer ${TOKEN}` } });
    assert.deepEqual(await answer.json(), { KEY: 'value' });
  });
});
