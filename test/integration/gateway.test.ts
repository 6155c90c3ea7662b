// The model gateway against a scripted provider over real sockets: what passes, what is refused, what breaks.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { makeUpstreams } from '#controlplane/gateway/upstream.ts';
import {
  type GatewayRig,
  RIG_TIMEOUTS,
  type RigAnswer,
  type RigState,
  rigModel,
  rigProvider,
  startGatewayRig,
} from '#test/support/gateway-rig.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const CANARY = `sk-canary-${randomUUID()}`;
const MAX_CONNECTIONS = 4;
const HEADERS = { 'content-type': 'application/json', authorization: 'Bearer bs_s' };

let provider: ScriptedProvider;
let rig: GatewayRig;
let state: RigState;
let { usage, ended, logs } = {} as GatewayRig;

/** Registers the providers, with other limits or another address. */
const register = (more: Readonly<{ timeouts?: Partial<typeof RIG_TIMEOUTS>; baseUrl?: string }> = {}): void => {
  const models = [rigModel('scripted-large'), rigModel('vendor/deep'), rigModel('off', { enabled: false })];
  const of = (id: string, enabled: boolean) =>
    rigProvider(id, more.baseUrl ?? provider.url, {
      models,
      enabled,
      headers: { 'x-title': 'beeuni test' },
      timeouts: { ...RIG_TIMEOUTS, ...more.timeouts },
      secrets: [{ id: 'default', secret: CANARY }],
    });
  state.providers = [of('demo', true), of('closed', false), rigProvider('claude', provider.url, { kind: 'anthropic' })];
  state.generation += 1;
};

before(async () => {
  provider = await startScriptedProvider({ key: CANARY });
  rig = await startGatewayRig({ maxConnections: MAX_CONNECTIONS });
  ({ state, usage, ended, logs } = rig);
});
after(async () => {
  await rig.close();
  await provider.close();
});
beforeEach(() => {
  usage.length = 0;
  ended.length = 0;
  state.allowed = null;
  state.registryIsDown = false;
  state.usageIsFull = false;
  register();
});

const outcomes = (): string[] => ended.map(({ outcome }) => outcome);
const post = (body: string | Buffer, headers: Record<string, string> = {}): Promise<RigAnswer> =>
  rig.post('/chat/completions', body, headers);
const ask = (
  content: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<RigAnswer> =>
  post(
    JSON.stringify({ model: 'demo/scripted-large', stream: true, messages: [{ role: 'user', content }], ...more }),
    headers,
  );
const body = (content: string): string =>
  JSON.stringify({ model: 'demo/scripted-large', stream: true, messages: [{ role: 'user', content }] });

const codeOf = (answer: RigAnswer): string => (JSON.parse(answer.text) as { error: { code: string } }).error.code;

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
  state.allowed = ['other/*'];
  const refused = await ask('x');
  assert.deepEqual([refused.status, codeOf(refused)], [403, 'model_not_allowed']);
  assert.equal(provider.requests.length, before);
});

test('D8 a project whose flag llm_gateway is off makes no call through the gateway', async () => {
  const before = provider.requests.length;
  state.gatewayIsOn = false;
  try {
    const refused = await ask('x');
    assert.deepEqual([refused.status, codeOf(refused)], [403, 'feature_disabled']);
  } finally {
    state.gatewayIsOn = true;
  }
  assert.equal(provider.requests.length, before);
});

test('FC9 a body above the ceiling, a compressed one and one that is no JSON are refused', async () => {
  assert.equal((await ask('x'.repeat(250_000))).status, 413);
  assert.equal((await ask('x', {}, { 'content-encoding': 'gzip' })).status, 415);
  assert.equal((await post('{"model"')).status, 400);
  assert.equal((await post(`{"model":"demo/scripted-large","a":${'['.repeat(90_000)}`)).status, 400);
  const chunked = await new Promise<number>((resolve, reject) => {
    const request = httpRequest(`${rig.url}/chat/completions`, {
      method: 'POST',
      headers: HEADERS,
    });
    request.on('response', (response) => resolve(response.resume().statusCode ?? 0));
    request.on('error', reject);
    for (let count = 0; count < 30; count += 1) request.write('x'.repeat(10_000));
    request.end();
  });
  assert.equal(chunked, 413);
});

test('the row of a call has the id of its request, so that an answer and a log line lead to what they cost', async () => {
  const answer = await ask('hello');
  await until('a row', () => usage.length === 1);
  assert.equal(usage[0]?.id, answer.headers['x-request-id']);
});

test('FC1 a stream without its end becomes an error event, never a made-up stop, and asks for one more call at most', async () => {
  const answer = await ask('@@truncate');
  assert.equal(answer.status, 200);
  assert.match(answer.text, /data: \{"error":\{"message":"the stream of the provider ended[^\n]*\n\n$/);
  assert.equal(answer.text.includes('"finish_reason":"stop"'), false);
  assert.equal(answer.text.includes('[DONE]'), false);
  const cut = await ask('@@drop 1');
  assert.match(cut.text, /"code":"provider_failed"/);
  assert.deepEqual(
    [answer, cut].map(({ text }) => /server_error|try again/.test(text)),
    [true, false],
  );
  await until('two rows', () => usage.length === 2);
  assert.deepEqual(outcomes(), ['incomplete', 'incomplete']);
  assert.ok((usage[0]?.completionTokens ?? 0) > 0);
});

test('FC2 a provider that says nothing is given up at the first-byte limit, one that falls silent at the idle limit', async () => {
  register({ timeouts: { first_byte_ms: 150, idle_ms: 150 } });
  const arrived = provider.nextRequest();
  const silent = await ask('@@silent');
  assert.deepEqual([silent.status, codeOf(silent)], [504, 'provider_timed_out']);
  assert.equal(await (await arrived).closed, true);
  const hung = await ask('@@hang');
  assert.equal(hung.status, 200);
  assert.match(hung.text, /"code":"provider_timed_out"/);
  assert.deepEqual(outcomes(), ['timed_out', 'timed_out']);
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
    const response = await fetch(`${rig.url}/chat/completions`, {
      method: 'POST',
      headers: HEADERS,
      body: body(script),
      signal: client.signal,
    });
    await response.body?.getReader().read();
    client.abort();
    assert.equal(await (await arrived).closed, true);
    await until('a usage row', () => usage.length === 1);
    assert.equal(usage[0]?.status, 499);
    assert.ok((usage[0]?.completionTokens ?? 0) >= 1);
  }
  assert.deepEqual(outcomes(), ['client_left', 'client_left']);
});

test('FC14 a call above the connections of a provider is refused with 429 and does not wait', async () => {
  const clients: AbortController[] = [];
  for (let count = 0; count < MAX_CONNECTIONS; count += 1) {
    const client = new AbortController();
    clients.push(client);
    await fetch(`${rig.url}/chat/completions`, {
      method: 'POST',
      headers: HEADERS,
      body: body('@@hang'),
      signal: client.signal,
    });
  }
  const refused = await ask('@@say x');
  assert.deepEqual([refused.status, codeOf(refused), refused.headers['retry-after']], [429, 'upstream_busy', '1']);
  for (const client of clients) client.abort();
  await until(
    'the places are free',
    () => outcomes().filter((outcome) => outcome === 'client_left').length === MAX_CONNECTIONS,
  );
  assert.equal((await ask('@@say x')).status, 200);
});

test('a provider that is down, or has an address that may not be used, is an error of its own', async () => {
  register({ baseUrl: 'http://127.0.0.1:1/v1' });
  const down = await ask('x');
  assert.deepEqual([down.status, codeOf(down)], [502, 'provider_failed']);
  register({ baseUrl: 'http://169.254.169.254/v1' });
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
  state.registryIsDown = true;
  assert.deepEqual([(await ask('x')).status], [503]);
  state.registryIsDown = false;
  state.usageIsFull = true;
  assert.equal((await ask('x')).status, 503);
});

test('an answer that is not streamed passes as it is and is metered', async () => {
  const answer = await ask('@@usage 10 20\n@@say whole', { stream: false });
  assert.match(answer.text, /"content":"whole"/);
  await until('a row', () => usage.length === 1);
  assert.equal(usage[0]?.completionTokens, 20);
});

test('the list of models holds what the project may use', async () => {
  state.allowed = ['demo/vendor/deep', 'closed/*'];
  const list = (await (await fetch(`${rig.url}/models`, { headers: HEADERS })).json()) as { data: { id: string }[] };
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
