// The model gateway against a scripted provider over real sockets: what passes, what is refused, what breaks.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import type { RegisteredProvider } from '#controlplane/app/provider-ports.ts';
import { makeChatHandler } from '#controlplane/gateway/chat.ts';
import { makeGatewayModelsHandler } from '#controlplane/gateway/models.ts';
import type { GatewayPorts, UsageRow } from '#controlplane/gateway/ports.ts';
import { makeUpstreams, type Upstreams } from '#controlplane/gateway/upstream.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const CANARY = `sk-canary-${randomUUID()}`;
const MAX_CONNECTIONS = 4;
const PROJECT = 'project-1';

type Answer = Readonly<{ status: number; headers: IncomingMessage['headers']; text: string }>;

let provider: ScriptedProvider;
let upstreams: Upstreams;
let base: string;
let stop: () => Promise<void>;
const usage: UsageRow[] = [];
const logs: string[] = [];
const outcomes: string[] = [];
let allowed: readonly string[] | null = null;
let gatewayIsOn = true;
let registryIsDown = false;
let usageIsFull = false;
let timeouts = { connect_ms: 1_000, first_byte_ms: 5_000, idle_ms: 5_000, total_ms: 20_000 };
let baseUrl = '';
let generation = 1;

const model = (id: string, enabled = true) => ({
  id,
  context_window: 1000,
  max_output: 100,
  input: ['text' as const],
  reasoning: false,
  price_input_micro_usd: 1_000_000,
  price_output_micro_usd: 2_000_000,
  enabled,
});

const registered = (id: string, enabled: boolean): RegisteredProvider => ({
  id,
  kind: 'openai-compatible',
  base_url: baseUrl,
  headers: { 'x-title': 'beeuni test' },
  timeouts,
  models: [model('scripted-large'), model('vendor/deep'), model('off', false)],
  enabled,
  keys: [],
  generation,
});

before(async () => {
  provider = await startScriptedProvider({ key: CANARY });
  upstreams = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: MAX_CONNECTIONS });
  const ports: GatewayPorts = {
    readRegistry: async () => {
      if (registryIsDown)
        throw new UnavailableError('registry_unavailable', 'the provider registry cannot be read now');
      return { generation, providers: [registered('demo', true), registered('closed', false)] };
    },
    findProjectPolicy: (uid) => (uid === PROJECT ? { gateway: gatewayIsOn, allowed } : undefined),
    readKeys: async () => [{ id: 'default', secret: CANARY }],
    upstreams,
    usage: { record: (row) => usage.push(row), isFull: () => usageIsFull },
    clock: systemClock,
    newId: randomUUID,
    log: createLogger({ level: 'debug', write: (line) => logs.push(line) }),
    maxRequestBytes: 200_000,
    onOutcome: (outcome) => outcomes.push(outcome),
  };
  const chat = makeChatHandler(ports);
  const models = makeGatewayModelsHandler(ports);
  const server = createServer((request, response) => {
    const controller = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) controller.abort();
    });
    const identity = { sessionUid: 's', generation: 3, podUid: 'p', namespace: 'n', projectUid: PROJECT };
    const call = { identity, requestId: 'r-1', signal: controller.signal, request, response };
    void (request.url === '/models' ? models(call) : chat(call));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await upstreams.close();
    await provider.close();
  };
});
after(() => stop());
beforeEach(() => {
  usage.length = 0;
  outcomes.length = 0;
  allowed = null;
  registryIsDown = false;
  usageIsFull = false;
  timeouts = { connect_ms: 1_000, first_byte_ms: 5_000, idle_ms: 5_000, total_ms: 20_000 };
  baseUrl = provider.url;
  generation += 1;
});

const post = (body: string | Buffer, headers: Record<string, string> = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(`${base}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
      agent: false,
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      const done = () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(parts).toString('utf8'),
        });
      response.on('end', done);
      response.on('error', done);
    });
    request.end(body);
  });

const ask = (
  content: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Answer> =>
  post(
    JSON.stringify({ model: 'demo/scripted-large', stream: true, messages: [{ role: 'user', content }], ...more }),
    headers,
  );

const codeOf = (answer: Answer): string => (JSON.parse(answer.text) as { error: { code: string } }).error.code;

test('a stream comes back as the provider sent it, with the key added, the model renamed and the tokens metered', async () => {
  const answer = await ask(
    '@@usage 1000 500\n@@say one two é😀',
    { stream_options: { include_usage: true } },
    {
      authorization: 'Bearer bs_session',
      'x-api-key': 'smuggled',
      'x-beeuni-turn-id': 'turn-7',
      cookie: 'a=b',
    },
  );
  const seen = provider.requests.at(-1);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8');
  assert.match(answer.text, /"content":"é😀"/);
  assert.ok(answer.text.endsWith('data: [DONE]\n\n'));
  assert.equal(seen?.headers['authorization'], `Bearer ${CANARY}`);
  assert.equal(seen?.headers['x-title'], 'beeuni test');
  for (const name of ['x-api-key', 'cookie', 'x-beeuni-turn-id']) assert.equal(seen?.headers[name], undefined, name);
  assert.equal(seen?.body['model'], 'scripted-large');
  await until('one usage row', () => usage.length === 1);
  const [row] = usage;
  assert.deepEqual(
    [
      row?.promptTokens,
      row?.completionTokens,
      row?.estimated,
      row?.costMicroUsd,
      row?.turnId,
      row?.servedModel,
      row?.status,
    ],
    [1000, 500, false, 2000, 'turn-7', 'scripted-large', 200],
  );
});

test('a body reaches the provider byte for byte but for the model name', async () => {
  const body =
    '{ "x":1.0e2 , "model" : "demo/vendor/deep",\n"messages":[{"role":"user","content":"\\u0040@say hi \\ud83d\\ude00"}] }';
  const answer = await post(body);
  assert.equal(answer.status, 200);
  assert.equal(provider.requests.at(-1)?.raw.toString('utf8'), body.replace('demo/vendor/deep', 'vendor/deep'));
  assert.match(answer.text, /"content":"hi/);
});

test('FC8 models that may not be used are refused with their code before the provider is asked', async () => {
  const before = provider.requests.length;
  assert.equal(codeOf(await ask('x', { model: 'demo/nothing' })), 'unknown_model');
  assert.equal(codeOf(await ask('x', { model: 'demo/off' })), 'model_disabled');
  assert.equal(codeOf(await ask('x', { model: 'closed/scripted-large' })), 'provider_disabled');
  allowed = ['other/*'];
  const refused = await ask('x');
  assert.deepEqual([refused.status, codeOf(refused)], [403, 'model_not_allowed']);
  assert.equal(provider.requests.length, before);
});

test('D8 a project whose flag llm_gateway is off makes no call through the gateway', async () => {
  const before = provider.requests.length;
  gatewayIsOn = false;
  try {
    const refused = await ask('x');
    assert.deepEqual([refused.status, codeOf(refused)], [403, 'feature_disabled']);
  } finally {
    gatewayIsOn = true;
  }
  assert.equal(provider.requests.length, before);
});

test('FC9 a body above the ceiling, a compressed one and one that is no JSON are refused', async () => {
  assert.equal((await ask('x'.repeat(250_000))).status, 413);
  assert.equal((await ask('x', {}, { 'content-encoding': 'gzip' })).status, 415);
  assert.equal((await post('{"model"')).status, 400);
  assert.equal((await post(`{"model":"demo/scripted-large","a":${'['.repeat(90_000)}`)).status, 400);
  const chunked = await new Promise<number>((resolve, reject) => {
    const request = httpRequest(`${base}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.on('response', (response) => resolve(response.resume().statusCode ?? 0));
    request.on('error', reject);
    for (let count = 0; count < 30; count += 1) request.write('x'.repeat(10_000));
    request.end();
  });
  assert.equal(chunked, 413);
});

test('FC1 a stream without its end becomes an error event, never a made-up stop', async () => {
  const answer = await ask('@@truncate');
  assert.equal(answer.status, 200);
  assert.match(answer.text, /data: \{"error":\{"message":"the stream of the provider ended[^\n]*\n\n$/);
  assert.equal(answer.text.includes('"finish_reason":"stop"'), false);
  assert.equal(answer.text.includes('[DONE]'), false);
  const cut = await ask('@@drop 1');
  assert.match(cut.text, /"code":"provider_failed"/);
  await until('two rows', () => usage.length === 2);
  assert.deepEqual(outcomes, ['incomplete', 'incomplete']);
  assert.ok((usage[0]?.completionTokens ?? 0) > 0);
});

test('FC2 a provider that says nothing is given up at the first-byte limit, one that falls silent at the idle limit', async () => {
  timeouts = { ...timeouts, first_byte_ms: 150, idle_ms: 150 };
  const arrived = provider.nextRequest();
  const silent = await ask('@@silent');
  assert.deepEqual([silent.status, codeOf(silent)], [504, 'provider_timed_out']);
  assert.equal(await (await arrived).closed, true);
  generation += 1;
  const hung = await ask('@@hang');
  assert.equal(hung.status, 200);
  assert.match(hung.text, /"code":"provider_timed_out"/);
  assert.deepEqual(outcomes, ['timed_out', 'timed_out']);
});

test('FC4 an error inside a stream is passed on once, and not followed by another', async () => {
  const answer = await ask('@@inside all is lost');
  assert.equal(answer.text.match(/"error"/g)?.length, 1);
  assert.match(answer.text, /all is lost/);
});

test("FC3 refusals of the provider are worded, and its key problem is not shown as the caller's", async () => {
  const busy = await ask('@@error 9 429 slow down');
  assert.deepEqual([busy.status, busy.headers['retry-after']], [429, '1']);
  const long = await ask('@@retry-after 86400\n@@error 9 429 later');
  assert.equal(long.status, 400);
  assert.ok(long.headers['x-beeuni-reset-at'] !== undefined);
  assert.equal((await ask('@@error 9 500 oops')).status, 502);
  const key = await ask('@@error 9 401 Incorrect API key sk-live-1');
  assert.deepEqual([key.status, codeOf(key)], [403, 'provider_auth_failed']);
  assert.equal(codeOf(await ask('@@overflow 9')), 'context_length_exceeded');
});

test('FC5 a client that leaves in mid-stream ends the call to the provider, and the tokens so far are metered', async () => {
  for (const script of ['@@hang', '@@stream 10000 2']) {
    usage.length = 0;
    const arrived = provider.nextRequest();
    const client = new AbortController();
    const response = await fetch(`${base}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'demo/scripted-large',
        stream: true,
        messages: [{ role: 'user', content: script }],
      }),
      signal: client.signal,
    });
    await response.body?.getReader().read();
    client.abort();
    assert.equal(await (await arrived).closed, true);
    await until('a usage row', () => usage.length === 1);
    assert.equal(usage[0]?.status, 499);
    assert.ok((usage[0]?.completionTokens ?? 0) >= 1);
  }
  assert.deepEqual(outcomes, ['client_left', 'client_left']);
});

test('FC14 a call above the connections of a provider is refused with 429 and does not wait', async () => {
  const clients: AbortController[] = [];
  for (let count = 0; count < MAX_CONNECTIONS; count += 1) {
    const client = new AbortController();
    clients.push(client);
    await fetch(`${base}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'demo/scripted-large',
        stream: true,
        messages: [{ role: 'user', content: '@@hang' }],
      }),
      signal: client.signal,
    });
  }
  const refused = await ask('@@say x');
  assert.deepEqual([refused.status, codeOf(refused), refused.headers['retry-after']], [429, 'upstream_busy', '1']);
  for (const client of clients) client.abort();
  await until(
    'the places are free',
    () => outcomes.filter((outcome) => outcome === 'client_left').length === MAX_CONNECTIONS,
  );
  assert.equal((await ask('@@say x')).status, 200);
});

test('a provider that is down, or has an address that may not be used, is an error of its own', async () => {
  baseUrl = 'http://127.0.0.1:1/v1';
  const down = await ask('x');
  assert.deepEqual([down.status, codeOf(down)], [502, 'provider_failed']);
  generation += 1;
  baseUrl = 'http://169.254.169.254/v1';
  const forbidden = await ask('x');
  assert.deepEqual([forbidden.status, codeOf(forbidden)], [403, 'address_not_allowed']);
});

test('FF10 a name that resolves to an address that is not allowed is refused at connect', async () => {
  const rebinding = makeUpstreams({
    allowedAddresses: [],
    maxConnections: 1,
    lookupAll: async () => [{ address: '127.0.0.1', family: 4 }],
  });
  const port = new URL(provider.url).port;
  const target = {
    id: 'a',
    generation: 1,
    base_url: `http://rebind.example:${port}/v1`,
    timeouts: { connect_ms: 1_000 },
  };
  const seen = provider.requests.length;
  await assert.rejects(rebinding.fetchOf(target)(`http://rebind.example:${port}/v1/models`));
  assert.equal(provider.requests.length, seen);
  await rebinding.close();
});

test('FC11 a registry that cannot be read, or a full spool, is 503 and never 401', async () => {
  registryIsDown = true;
  assert.deepEqual([(await ask('x')).status], [503]);
  registryIsDown = false;
  usageIsFull = true;
  assert.equal((await ask('x')).status, 503);
});

test('an answer that is not streamed passes as it is and is metered', async () => {
  const answer = await ask('@@usage 10 20\n@@say whole', { stream: false });
  assert.match(answer.text, /"content":"whole"/);
  await until('a row', () => usage.length === 1);
  assert.equal(usage[0]?.completionTokens, 20);
});

test('the list of models holds what the project may use', async () => {
  allowed = ['demo/vendor/deep', 'closed/*'];
  const list = (await (await fetch(`${base}/models`)).json()) as { data: { id: string }[] };
  assert.deepEqual(
    list.data.map(({ id }) => id),
    ['demo/vendor/deep'],
  );
});

test('FF11 the key is in no answer and in no log line', async () => {
  const answers = await Promise.all([ask('@@error 9 400 bad'), ask('@@say x'), ask('@@error 9 401 x')]);
  assert.ok(logs.length > 0);
  for (const text of [...logs, ...answers.map((answer) => answer.text + JSON.stringify(answer.headers))]) {
    assert.equal(text.includes(CANARY), false);
  }
});
