// The clients that people use, unchanged, against the gateway: OpenAI's and Anthropic's own, whole answers and streams,
// tools, images, embeddings, lists and errors. Source: 20-control-plane §5.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { type GatewayRig, rigModel, rigProvider, startGatewayRig } from '#test/support/gateway-rig.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const MODEL = 'demo/scripted-large';
const CLAUDE = 'claude/scripted-large';
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

let provider: ScriptedProvider;
let rig: GatewayRig;
let openai: OpenAI;
let anthropic: Anthropic;

before(async () => {
  provider = await startScriptedProvider({ key: 'sk-provider' });
  rig = await startGatewayRig();
  const more = {
    models: [rigModel('scripted-large'), rigModel('embedder')],
    secrets: [{ id: 'default', secret: 'sk-provider' }],
  };
  rig.state.providers = [
    rigProvider('demo', provider.url, more),
    rigProvider('claude', provider.url, { ...more, kind: 'anthropic' }),
  ];
  rig.state.generation += 1;
  openai = new OpenAI({ baseURL: rig.url, apiKey: 'bs_s', maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: rig.url.replace(/\/v1$/, ''), apiKey: 'bs_s', maxRetries: 0 });
});
after(async () => {
  await rig.close();
  await provider.close();
});

const user = (content: string) => ({ role: 'user' as const, content });
const lastRow = async () => {
  await until('a usage row', () => rig.usage.length > 0);
  return rig.usage.splice(0).at(-1);
};

test("OpenAI's client gets a completion whole and as a stream, with tokens metered", async () => {
  const whole = await openai.chat.completions.create({ model: MODEL, messages: [user('@@usage 11 7\n@@say hé 😀')] });
  assert.equal(whole.choices[0]?.message.content, 'hé 😀');
  assert.equal((await lastRow())?.completionTokens, 7);
  const stream = await openai.chat.completions.create({
    model: MODEL,
    messages: [user('@@usage 11 7\n@@say one two')],
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  assert.equal(text, 'one two');
  const row = await lastRow();
  assert.deepEqual([row?.promptTokens, row?.completionTokens, row?.costMicroUsd], [11, 7, 25]);
});

test("OpenAI's client calls tools and sends images through", async () => {
  const tools = [
    { type: 'function' as const, function: { name: 'look', parameters: { type: 'object', properties: {} } } },
  ];
  const script = user('@@tool look {"at":"x"}\n@@say seen');
  const first = await openai.chat.completions.create({ model: MODEL, messages: [script], tools });
  const message = first.choices[0]?.message;
  const call = message?.tool_calls?.[0];
  assert.ok(message !== undefined && call?.type === 'function');
  assert.equal(call.function.arguments, '{"at":"x"}');
  const second = await openai.chat.completions.create({
    model: MODEL,
    messages: [script, message, { role: 'tool', tool_call_id: call.id, content: 'ok' }],
    tools,
  });
  assert.equal(second.choices[0]?.message.content, 'seen');
  const url = `data:image/png;base64,${PIXEL}`;
  await openai.chat.completions.create({
    model: MODEL,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: '@@say image' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
  });
  assert.ok(provider.requests.at(-1)?.raw.toString('utf8').includes(url));
});

test("OpenAI's client gets responses whole and as a stream, with a tool", async () => {
  const whole = await openai.responses.create({ model: MODEL, input: '@@usage 5 3\n@@say hello' });
  assert.equal(whole.output_text, 'hello');
  assert.equal((await lastRow())?.completionTokens, 3);
  const stream = await openai.responses.create({
    model: MODEL,
    input: '@@usage 5 3\n@@text a b\n@@tool look {"at":1}',
    tools: [{ type: 'function', name: 'look', parameters: {}, strict: false }],
    stream: true,
  });
  const types: string[] = [];
  let text = '';
  for await (const event of stream) {
    types.push(event.type);
    if (event.type === 'response.output_text.delta') text += event.delta;
    if (event.type === 'response.function_call_arguments.done') text += event.arguments;
  }
  assert.equal(text, 'a b{"at":1}');
  assert.equal(types.at(-1), 'response.completed');
  const row = await lastRow();
  assert.deepEqual([row?.promptTokens, row?.completionTokens, row?.status], [5, 3, 200]);
});

test("OpenAI's client gets embeddings and the list of models", async () => {
  const { data } = await openai.embeddings.create({ model: 'demo/embedder', input: ['four', 'seven77'] });
  assert.deepEqual(
    data.map(({ embedding }) => [...embedding]),
    [
      [4, 1],
      [7, 1],
    ],
  );
  assert.ok(((await lastRow())?.promptTokens ?? 0) > 0);
  const ids = (await openai.models.list()).data.map(({ id }) => id);
  assert.ok(ids.includes(MODEL) && ids.includes(CLAUDE));
});

test("Anthropic's client gets a message whole and as a stream, with a tool and an image, and lists models", async () => {
  const whole = await anthropic.messages.create({
    model: CLAUDE,
    max_tokens: 100,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: '@@usage 9 4\n@@say bonjour' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
        ],
      },
    ],
  });
  assert.deepEqual(whole.content[0], { type: 'text', text: 'bonjour' });
  const seen = provider.requests.at(-1);
  assert.equal(seen?.headers['x-api-key'], 'sk-provider');
  assert.equal(seen?.headers['authorization'], undefined);
  assert.match(seen?.headers['anthropic-version'] ?? '', /^\d{4}-\d\d-\d\d$/);
  assert.ok(seen?.raw.toString('utf8').includes(PIXEL));
  const first = await lastRow();
  assert.deepEqual([first?.promptTokens, first?.completionTokens], [9, 4]);
  const stream = anthropic.messages.stream({
    model: CLAUDE,
    max_tokens: 100,
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
    messages: [user('@@usage 9 4\n@@text ça va\n@@tool look {"at":"y"}')],
  });
  const message = await stream.finalMessage();
  assert.deepEqual(
    message.content.map((block) => (block.type === 'tool_use' ? block.input : block.type === 'text' ? block.text : '')),
    ['ça va', { at: 'y' }],
  );
  const second = await lastRow();
  assert.deepEqual([second?.promptTokens, second?.completionTokens, second?.status], [9, 4, 200]);
  const ids: string[] = [];
  for await (const each of anthropic.models.list()) ids.push(each.id);
  assert.ok(ids.includes(CLAUDE));
});

test('both clients throw their own classes for errors of the gateway, before and inside a stream', async () => {
  await assert.rejects(
    openai.chat.completions.create({ model: 'demo/none', messages: [user('x')] }),
    (error: unknown) => error instanceof OpenAI.NotFoundError && error.code === 'unknown_model',
  );
  await assert.rejects(
    anthropic.messages.create({ model: 'claude/none', max_tokens: 1, messages: [user('x')] }),
    (error: unknown) => error instanceof Anthropic.NotFoundError,
  );
  await assert.rejects(
    new OpenAI({ baseURL: rig.url, apiKey: 'nonsense', maxRetries: 0 }).models.list(),
    OpenAI.AuthenticationError,
  );
  await assert.rejects(
    new Anthropic({ baseURL: rig.url.replace(/\/v1$/, ''), apiKey: 'nonsense', maxRetries: 0 }).messages.create({
      model: CLAUDE,
      max_tokens: 1,
      messages: [user('x')],
    }),
    Anthropic.AuthenticationError,
  );
  const cut = async (): Promise<void> => {
    const stream = await openai.chat.completions.create({ model: MODEL, messages: [user('@@truncate')], stream: true });
    for await (const _chunk of stream);
  };
  await assert.rejects(cut(), OpenAI.APIError);
  const cutResponse = async (): Promise<void> => {
    const stream = await openai.responses.create({ model: MODEL, input: '@@truncate', stream: true });
    for await (const _event of stream);
  };
  await assert.rejects(cutResponse(), OpenAI.APIError);
  const cutMessage = anthropic.messages.stream({ model: CLAUDE, max_tokens: 9, messages: [user('@@truncate')] });
  await assert.rejects(cutMessage.finalMessage(), Anthropic.APIError);
});

test('a provider is not called by an API that it does not speak', async () => {
  const seen = provider.requests.length;
  await assert.rejects(
    openai.chat.completions.create({ model: CLAUDE, messages: [user('x')] }),
    (error: unknown) => error instanceof OpenAI.BadRequestError && error.code === 'wire_not_supported',
  );
  await assert.rejects(
    anthropic.messages.create({ model: MODEL, max_tokens: 1, messages: [user('x')] }),
    Anthropic.BadRequestError,
  );
  assert.equal(provider.requests.length, seen);
});
