// What providers and sandboxes may send to hurt the gateway, in bytes. Source: faults FC4 to FC13, FF9, FF10, FF13.
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { type GatewayRig, rigProvider, startGatewayRig } from '#test/support/gateway-rig.ts';
import { type RawProvider, rawHead, startRawProvider } from '#test/support/raw-provider.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const CANARY = 'sk-canary-9f8e7d6c5b4a39281706';
const MODEL = 'demo/scripted-large';

let provider: ScriptedProvider;
let rig: GatewayRig;
const raws: RawProvider[] = [];

before(async () => {
  provider = await startScriptedProvider({ key: CANARY });
  rig = await startGatewayRig({ maxConnections: 64, maxRequestBytes: 2_000_000 });
});
after(async () => {
  await rig.close();
  await provider.close();
});
const register = (url: string, kind: 'openai-compatible' | 'anthropic' = 'openai-compatible'): void => {
  rig.state.providers = [rigProvider('demo', url, { kind, secrets: [{ id: 'default', secret: CANARY }] })];
  rig.state.generation += 1;
};
beforeEach(() => {
  rig.usage.length = 0;
  rig.ended.length = 0;
  rig.state.revoked.clear();
  register(provider.url);
});
afterEach(async () => {
  await Promise.all(raws.splice(0).map((raw) => raw.close()));
});
const raw = async (answer: (socket: Socket, body: Buffer) => void, kind?: 'anthropic'): Promise<RawProvider> => {
  const started = await startRawProvider(answer);
  raws.push(started);
  register(started.url, kind);
  return started;
};

const bodyOf = (content: string, more: object = {}): string =>
  JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content }], ...more });
const ask = (content = 'x', more: object = {}, path = '/chat/completions') => rig.post(path, bodyOf(content, more));
const codeOf = (text: string): string => (JSON.parse(text) as { error: { code: string } }).error.code;

const chunk = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}`;
const STREAM = `: comment é\r\n\r\n${chunk('é😀 ')}\r\n\r\n${chunk('"quoted\\u2028"')}\n\n${chunk('', 'stop')}\n\ndata: [DONE]\n\n`;

test('FC6 a stream that arrives byte by byte, with CRLF and comments, leaves as the same bytes', async () => {
  const bytes = Buffer.from(STREAM);
  await raw((socket) => {
    socket.write(rawHead());
    let at = 0;
    const next = (): void => {
      if (at === bytes.length) {
        socket.end();
        return;
      }
      socket.write(bytes.subarray(at, at + 1));
      at += 1;
      setImmediate(next);
    };
    next();
  });
  const answer = await ask();
  assert.equal(answer.text, STREAM);
  assert.equal(rig.ended.at(-1)?.outcome, 'ok');
});

test('FC6 one event of 5 MB passes whole', async () => {
  const large = `${chunk('x'.repeat(5_000_000))}\n\n${chunk('', 'stop')}\n\ndata: [DONE]\n\n`;
  await raw((socket) => socket.end(rawHead() + large));
  const answer = await ask();
  assert.equal(answer.text.length, large.length);
  assert.equal(rig.ended.at(-1)?.outcome, 'ok');
});

test('FC7 tool calls with broken arguments, in any order, pass as they are and are not completed by the gateway', async () => {
  const call = (index: number, args: string | null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: args } }] }, finish_reason: null }] })}\n\n`;
  const finish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n`;
  const text = `${call(1, '{"a":')}${call(0, '{"b"')}${call(1, null)}${call(0, ':1')}${finish}`;
  await raw((socket) => socket.end(rawHead() + text));
  assert.equal((await ask()).text, text);
});

test('FC4 an error inside a stream of messages is passed on once, as it is, and the call is not made again', async () => {
  const text = `event: message_start\ndata: {"type":"message_start","message":{"model":"c","usage":{"input_tokens":3,"output_tokens":1}}}\n\nevent: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n`;
  const upstream = await raw((socket) => socket.end(rawHead() + text), 'anthropic');
  const answer = await ask('x', { max_tokens: 5 }, '/messages');
  assert.equal(answer.text, text);
  assert.equal(upstream.calls(), 1);
  assert.equal(rig.ended.at(-1)?.outcome, 'provider_error');
  await until('a usage row', () => rig.usage.length === 1);
  assert.equal(rig.usage[0]?.promptTokens, 3);
});

test('FC1 a body that is shorter than its length, or no JSON at all, is an error and never a success', async () => {
  await raw((socket) => socket.end(`${rawHead('application/json', '200 OK', 'content-length: 500\r\n')}{"choices":[`));
  const short = await ask('x', { stream: false });
  assert.deepEqual([short.status, codeOf(short.text)], [502, 'provider_failed']);
  await raw((socket) => socket.end(`${rawHead('application/json')}<html>oops`));
  const html = await ask('x', { stream: false });
  assert.deepEqual([html.status, codeOf(html.text)], [502, 'provider_failed']);
  assert.match(html.text, /the provider's answer is not valid/);
  await raw((socket) => socket.end('HTTP/1.1 nonsense\r\n\r\n'));
  assert.equal((await ask()).status, 502);
});

test('FC5 clients that leave at any chunk of large streams end every call to the provider, and the rest goes on', async () => {
  const block = `${chunk('y'.repeat(20_000))}\n\n`;
  let open = 0;
  const upstream = await raw((socket) => {
    open += 1;
    socket.write(rawHead());
    let sent = 0;
    const more = (): void => {
      while (sent < 250 && !socket.destroyed) {
        sent += 1;
        if (!socket.write(block)) {
          socket.once('drain', more);
          return;
        }
      }
    };
    more();
  });
  const leavers = Array.from({ length: 30 }, async (_, at) => {
    const leaver = new AbortController();
    const answer = await fetch(`${rig.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bs_s' },
      body: bodyOf('x'),
      signal: leaver.signal,
    });
    const reader = answer.body?.getReader();
    for (let count = 0; count <= at % 7; count += 1) await reader?.read();
    leaver.abort();
  });
  await Promise.all(leavers);
  await until('every call to the provider has ended', () => upstream.closed() === open);
  await until('every call is metered', () => rig.usage.length === 30);
  assert.ok(rig.usage.every(({ status, completionTokens }) => status === 499 && completionTokens > 0));
  register(provider.url);
  assert.equal((await ask('@@say on')).status, 200);
});

test('FC5 a client that does not read holds up neither memory nor others', async () => {
  const block = `${chunk('z'.repeat(60_000))}\n\n`;
  let written = 0;
  await raw((socket) => {
    socket.write(rawHead());
    const more = (): void => {
      while (written < 200_000_000 && !socket.destroyed) {
        written += block.length;
        if (!socket.write(block)) {
          socket.once('drain', more);
          return;
        }
      }
    };
    more();
  });
  const response = await new Promise<import('node:http').IncomingMessage>((resolve) => {
    const request = httpRequest(`${rig.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bs_s' },
    });
    request.on('response', resolve);
    request.on('error', () => undefined);
    request.end(bodyOf('x'));
  });
  response.pause();
  let looks = 0;
  let seen = -1;
  await until('the provider is held back', () => {
    looks = written === seen ? looks + 1 : 0;
    seen = written;
    return written > 0 && looks >= 10;
  });
  assert.ok(written < 50_000_000, `${written} bytes were taken for a client that reads nothing`);
  response.destroy();
});

test('FC8 a provider that is removed while a call runs is gone for the next one; the running one finishes', async () => {
  const arrived = provider.nextRequest();
  const running = ask('@@stream 20 10');
  await arrived;
  rig.state.providers = [];
  rig.state.generation += 1;
  const next = await ask('@@say x');
  assert.deepEqual([next.status, codeOf(next.text)], [404, 'unknown_model']);
  const finished = await running;
  assert.equal(finished.status, 200);
  assert.ok(finished.text.endsWith('data: [DONE]\n\n'));
});

const MEBIBYTE = 2 ** 20;

test('FC9 a body of 100 MB is refused early, and takes no memory of its size', async () => {
  const before_ = process.memoryUsage().rss;
  const status = await new Promise<number>((resolve) => {
    const request = httpRequest(`${rig.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bs_s' },
    });
    request.on('response', (response) => resolve(response.resume().statusCode ?? 0));
    request.on('error', () => resolve(0));
    const block = Buffer.alloc(MEBIBYTE, 0x20);
    let sent = 0;
    const more = (): void => {
      while (sent < 100 && !request.destroyed) {
        sent += 1;
        if (!request.write(block)) {
          request.once('drain', more);
          return;
        }
      }
      request.end();
    };
    more();
  });
  // A client that still writes may lose the answer of a connection that ends; what counts is that it ends.
  assert.ok(status === 413 || status === 0, String(status));
  assert.ok(process.memoryUsage().rss - before_ < 60 * MEBIBYTE);
});

test('FC9 keys that are there twice, and those that could change an object, change nothing', async () => {
  const twice = await rig.post('/chat/completions', `{"model":"${MODEL}","model":"demo/off","messages":[]}`);
  assert.deepEqual([twice.status, codeOf(twice.text)], [400, 'invalid_json']);
  const answer = await rig.post(
    '/chat/completions',
    `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"model":"${MODEL}","messages":[{"role":"user","content":"@@say x"}]}`,
  );
  assert.equal(answer.status, 200);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

/** Sends bytes as they are; gives back the status of the first answer, 0 for a connection that just ends. */
const sendRaw = (head: readonly string[], body = ''): Promise<number> =>
  new Promise((resolve) => {
    const { port } = new URL(rig.url);
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(`${head.join('\r\n')}\r\n\r\n${body}`));
    let text = '';
    socket.on('data', (part: Buffer) => {
      text += part.toString('latin1');
      const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1];
      if (status === undefined) return;
      socket.destroy();
      resolve(Number(status));
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(0));
  });

test('FC10 heads that two readers could understand differently are refused before the provider is asked', async () => {
  const mark = provider.requests.length;
  const body = bodyOf('@@say x');
  const base = [
    'POST /gateway/v1/chat/completions HTTP/1.1',
    'host: gateway',
    'authorization: Bearer bs_s',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  const json = 'content-type: application/json';
  const cases: readonly (readonly [string, readonly string[], readonly number[]])[] = [
    ['a second content-length', [...base, json, 'content-length: 3'], [400]],
    ['chunks with a length', [...base, json, 'transfer-encoding: chunked'], [400]],
    ['a tab behind the type', [...base, 'content-type: application/json\t;x'], [415]],
    ['another type', [...base, 'content-type: text/plain'], [415]],
    ['no type', base, [415]],
    ['two types', [...base, json, 'content-type: text/plain'], [415]],
    ['two credentials', [...base, json, 'authorization: Bearer bs_other'], [400]],
    ['a line feed in a header', [...base, json, 'x-a: b\nx-c: d'], [400]],
    ['no host', base.filter((line) => !line.startsWith('host')).concat(json), [400]],
  ];
  for (const [what, head, expected] of cases) {
    assert.ok(expected.includes(await sendRaw(head, body)), what);
  }
  assert.equal(provider.requests.length, mark);
  assert.equal(await sendRaw([...base, json], body), 200);
});

test('FC12 a credential that is taken away is refused by the next call, and what runs by it is ended with the reason', async () => {
  const part = `{"choices":[{"message":{"content":"${'x'.repeat(100_000)}`;
  const started = await raw((socket, body) => {
    const text = body.toString('utf8');
    if (text.includes('cut')) socket.write(`${rawHead('application/json')}${part}`);
    else if (text.includes('line')) socket.write(`${rawHead()}${chunk('a')}\n`);
    else if (text.includes('event')) socket.write(`${rawHead()}${chunk('a')}\n\n`);
  });
  /** Resolves with the head of the answer. */
  const begin = (content: string, stream: boolean, session = 's'): Promise<Response> =>
    fetch(`${rig.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer bs_${session}` },
      body: bodyOf(content, { stream }),
    });
  const stays = await begin('event', true, 'other');
  const streams = [await begin('event', true), await begin('line', true)];
  const cut = await begin('cut', false);
  const silent = begin('silent', false);
  await until('the last call is at the provider', () => started.calls() === 5);
  rig.state.revoked.add('s');
  const next = await ask('x');
  assert.deepEqual([next.status, codeOf(next.text)], [401, 'unauthenticated']);
  await rig.lookAtRunning();
  for (const answer of streams) {
    const text = await answer.text();
    const error = /\n\ndata: (\{"error":.*\})\n\n$/.exec(text)?.[1] ?? text;
    assert.equal(codeOf(error), 'superseded');
    assert.equal(/\d|\[DONE\]/.test(error), false, 'no harness takes it for a success, or for a reason to call again');
  }
  await assert.rejects(cut.text(), 'a body that is cut is not ended as if it were whole');
  const answer = await silent;
  assert.deepEqual([answer.status, codeOf(await answer.text())], [409, 'superseded']);
  await until('the provider is called off', () => started.closed() === 4);
  assert.deepEqual(
    rig.ended.map(({ outcome }) => outcome),
    ['revoked', 'revoked', 'revoked', 'revoked'],
  );
  assert.deepEqual(
    rig.usage.map(({ status, code, sessionUid }) => [status, code, sessionUid]),
    Array.from({ length: 4 }, () => [409, 'superseded', 's']),
  );
  // Another session's stream has not noticed.
  const reader = stays.body?.getReader();
  assert.equal((await reader?.read())?.done, false);
  await reader?.cancel();
});

test('FC12 each API is told of a revocation in its own shape of an error event', async () => {
  for (const [path, kind, first] of [
    ['/messages', 'anthropic', 'event: message_start\ndata: {"type":"message_start"}'],
    ['/responses', 'openai-compatible', 'event: response.created\ndata: {"type":"response.created"}'],
  ] as const) {
    rig.state.revoked.clear();
    const started = await startRawProvider((socket) => void socket.write(`${rawHead()}${first}\n\n`));
    raws.push(started);
    register(started.url, kind);
    const answer = await fetch(`${rig.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bs_s' },
      body: bodyOf('x'),
    });
    assert.equal(answer.status, 200, path);
    rig.state.revoked.add('s');
    await rig.lookAtRunning();
    const text = await answer.text();
    const data = JSON.parse(/\n\nevent: error\ndata: (.*)\n\n$/.exec(text)?.[1] ?? '{}') as Record<string, unknown>;
    assert.deepEqual(
      [data['type'], (data['error'] as { code: string } | undefined)?.code],
      ['error', 'superseded'],
      text,
    );
    assert.equal(/\d/.test(JSON.stringify(data['error'])), false, text);
  }
});

test('FF3 an older generation and a missing credential are told apart, in final words', async () => {
  const old = await rig.post('/chat/completions', bodyOf('x'), { authorization: 'Bearer bs_old' });
  assert.deepEqual([old.status, codeOf(old.text)], [409, 'superseded']);
  assert.equal(/\d/.test(old.text), false);
  const none = await rig.post('/messages', bodyOf('x'), { authorization: 'Basic x' });
  assert.equal(none.status, 401);
  assert.equal((JSON.parse(none.text) as { type: string }).type, 'error');
});

test('FC13 a thousand bad credentials are refused one by one, cheaply, and good calls go on between them', async () => {
  const bad = async (): Promise<void> => {
    for (let count = 0; count < 100; count += 1) {
      const answer = await rig.post('/chat/completions', bodyOf('x'), { authorization: `Bearer x${count}` });
      assert.equal(answer.status, 401);
    }
  };
  const mark = provider.requests.length;
  const attack = Promise.all(Array.from({ length: 10 }, bad));
  for (let count = 0; count < 10; count += 1) assert.equal((await ask('@@say good')).status, 200);
  await attack;
  assert.equal(provider.requests.length, mark + 10);
});

test('FF9 the gateway fetches no address that a request names, and cuts what it keeps of a request', async () => {
  let fetched = 0;
  const bait = await startRawProvider(() => {
    fetched += 1;
  });
  raws.push(bait);
  const image = { type: 'image_url', image_url: { url: `${bait.url}/leak?${CANARY.slice(0, 4)}` } };
  const answer = await rig.post(
    '/chat/completions',
    JSON.stringify({
      model: MODEL,
      messages: [{ role: 'user', content: [{ type: 'text', text: '@@say x' }, image] }],
      metadata: { callback: bait.url },
      api_base: bait.url,
      base_url: bait.url,
    }),
    {
      'x-beeuni-turn-id': `t${'1'.repeat(5_000)}`,
      'x-beeuni-agent': 'a'.repeat(5_000),
      'x-portkey-custom-host': bait.url,
      host: 'metadata.internal',
      'x-forwarded-host': bait.url,
    },
  );
  assert.equal(answer.status, 200);
  await until('a usage row', () => rig.usage.length === 1);
  assert.deepEqual([rig.usage[0]?.turnId?.length, rig.usage[0]?.agent?.length], [64, 128]);
  assert.equal(fetched, 0);
  const seen = provider.requests.at(-1);
  assert.equal(seen?.headers['host'], new URL(provider.url).host);
  assert.equal(seen?.headers['x-portkey-custom-host'], undefined);
  const long = await rig.post('/chat/completions', bodyOf('x', { model: `demo/${'m'.repeat(10_000)}` }));
  assert.equal(long.status, 400);
});

test('FF10 a redirect of the provider is not followed', async () => {
  let fetched = 0;
  const bait = await startRawProvider(() => {
    fetched += 1;
  });
  raws.push(bait);
  await raw((socket) =>
    socket.end(rawHead('text/plain', '302 Found', `location: ${bait.url}\r\ncontent-length: 0\r\n`)),
  );
  const answer = await ask();
  assert.deepEqual([answer.status, codeOf(answer.text)], [400, 'provider_failed']);
  assert.equal(fetched, 0);
});

test('FF11 FF13 neither the key nor a forged line gets into logs and answers, whatever the provider sends back', async () => {
  rig.logs.length = 0;
  const forged = `\n{"level":60,"msg":"forged"}\r\n\u001b[31m ${CANARY}`;
  const answers = [];
  for (const status of ['400 Bad', '401 No', '403 No', '429 Slow', '500 Oops', '503 Away']) {
    await raw((socket) =>
      socket.end(
        `${rawHead('application/json', status)}${JSON.stringify({ error: { message: `bad key ${CANARY} ${forged}`, code: CANARY } })}`,
      ),
    );
    answers.push(await ask(forged, { model: `${MODEL}`, user: forged }));
  }
  await raw((socket) => socket.destroy());
  answers.push(await ask(forged));
  for (const answer of answers) {
    assert.ok(answer.status >= 400);
    assert.equal((answer.text + JSON.stringify(answer.headers)).includes(CANARY), false, answer.text);
  }
  assert.ok(rig.logs.length > 0);
  for (const line of rig.logs) {
    assert.equal(line.includes(CANARY), false, line);
    assert.equal(line.trimEnd().split('\n').length, 1, line);
    assert.equal(line.includes('\u001b'), false);
  }
});

test('FF11 a key that a provider repeats, cut anywhere, reaches no sandbox', async () => {
  const event = `data: {"error":{"message":"key Bearer ${CANARY} is over"}}\n\n`;
  const hidden = CANARY.replace(/./g, '*');
  for (const split of [0, 30, 40, event.length - 4]) {
    await raw((socket) => {
      socket.write(rawHead() + chunk(CANARY) + '\n\n' + event.slice(0, split));
      setImmediate(() => socket.end(event.slice(split)));
    });
    const { text } = await ask();
    assert.equal(text, `${chunk(hidden)}\n\n${event.replace(CANARY, hidden)}`);
  }
  const whole = JSON.stringify({ model: CANARY, choices: [{ message: { content: CANARY } }] });
  await raw((socket) => socket.end(`${rawHead('application/json')}${whole}`));
  assert.equal((await ask('x', { stream: false })).text, whole.replaceAll(CANARY, hidden));
  const error = JSON.stringify({ error: { message: `no ${CANARY}` } });
  await raw((socket) =>
    socket.end(`${rawHead('application/json', '400 Bad Request', `x-key: ${CANARY}\r\n`)}${error}`),
  );
  const refused = await ask();
  assert.ok(!JSON.stringify([refused, rig.logs, rig.usage]).includes(CANARY.slice(0, 12)));
});

test('FC7 usage that cannot be neither reaches a row nor breaks the next call', async () => {
  const usage = '{"prompt_tokens":1e300,"completion_tokens":-1}';
  await raw((socket) =>
    socket.end(`${rawHead()}${chunk('a', 'stop')}\n\ndata: {"usage":${usage}}\n\ndata: [DONE]\n\n`),
  );
  for (let call = 0; call < 2; call += 1) assert.equal((await ask()).status, 200);
  await until('two usage rows', () => rig.usage.length === 2);
  for (const row of rig.usage) {
    assert.ok(row.estimated && row.promptTokens < 100 && row.completionTokens === 2, JSON.stringify(row));
  }
});

test('G31 a call ends with the reason when its key or its provider is taken away, and one with another key goes on', async () => {
  const other = 'sk-other-0123456789abcdef';
  const upstream = await raw((socket) => void socket.write(`${rawHead()}${chunk('a')}\n\n`));
  const begin = async () => {
    const answer = await fetch(`${rig.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bs_s' },
      body: bodyOf('x'),
    });
    assert.equal(answer.status, 200);
    return answer;
  };
  const endOf = async (answer: Response): Promise<string> =>
    codeOf(/\n\ndata: (\{"error":.*\})\n\n$/.exec(await answer.text())?.[1] ?? '{"error":{}}');
  const change = (enabled: boolean, secrets: readonly string[]): void => {
    const keys = secrets.map((secret, at) => ({ id: `k${at}`, secret }));
    rig.state.providers = [rigProvider('demo', upstream.url, { enabled, secrets: keys })];
    rig.state.generation += 1;
  };
  const first = await begin();
  await rig.lookAtRunning();
  change(true, [other]);
  const second = await begin();
  await rig.lookAtRunning();
  assert.equal(await endOf(first), 'provider_auth_failed');
  change(true, [CANARY, other]);
  await rig.lookAtRunning();
  rig.state.registryIsDown = true;
  await assert.rejects(rig.lookAtRunning());
  rig.state.registryIsDown = false;
  await until('the first call is called off, and no other', () => upstream.closed() === 1);
  change(false, [CANARY, other]);
  await rig.lookAtRunning();
  assert.equal(await endOf(second), 'provider_disabled');
  assert.deepEqual(
    rig.ended.map(({ outcome }) => outcome),
    ['revoked', 'revoked'],
  );
});
