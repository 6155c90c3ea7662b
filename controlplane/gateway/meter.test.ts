// What the meter sees of a stream, however it is cut.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { costMicroUsd, estimateMicroUsd, type Metered, tokensOf } from './meter.ts';
import { chatReported, messagesReported, responsesReported } from './reported.ts';
import { makeBodyMeter, makeStreamMeter } from './stream-meter.ts';

const chunk = (delta: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ delta: { content: delta }, finish_reason: finish }] })}\n\n`;
const USAGE = `data: ${JSON.stringify({ model: 'm', choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } } })}\n\n`;
const WHOLE = `: comment\r\n\r\n${chunk('é😀 "finish_reason":"stop"')}${chunk('x', 'stop')}${USAGE}data: [DONE]\n\n`;

const meterAll = (parts: readonly Uint8Array[], reported = chatReported): Metered => {
  const meter = makeStreamMeter(reported);
  for (const part of parts) meter.push(Buffer.from(part));
  return meter.result();
};
const cut = (text: string, places: readonly number[]): Uint8Array[] => {
  const bytes = new TextEncoder().encode(text);
  const at = [0, ...[...places].map((place) => place % bytes.length).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
};

test('FC6 a stream cut at any bytes is metered as the whole one', () => {
  const whole = meterAll([new TextEncoder().encode(WHOLE)]);
  assert.deepEqual(whole.usage, { promptTokens: 7, cachedTokens: 2, completionTokens: 3 });
  assert.equal(whole.isEnded, true);
  assert.equal(whole.servedModel, 'm');
  assert.equal(whole.eventTokens, 3);
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 40 }), (places) => {
      assert.deepEqual(meterAll(cut(WHOLE, places)), whole);
    }),
    { numRuns: 300 },
  );
  assert.deepEqual(meterAll([...new TextEncoder().encode(WHOLE)].map((byte) => Uint8Array.of(byte))), whole);
});

test('FC1 a stream without finish reason and end mark is not ended, and text that looks like one does not end it', () => {
  const metered = meterAll([new TextEncoder().encode(chunk('"finish_reason":"stop"') + chunk('data: [DONE]'))]);
  assert.equal(metered.isEnded, false);
  assert.equal(meterAll([new TextEncoder().encode(chunk('x', 'length'))]).isEnded, true);
  assert.equal(meterAll([new TextEncoder().encode('data: {"choices":[{"finish_reason": "stop"}]}\n\n')]).isEnded, true);
});

test('a stream that is cut inside a line says so', () => {
  assert.equal(meterAll([new TextEncoder().encode('data: {"a')]).isInLine, true);
  assert.equal(meterAll([new TextEncoder().encode(chunk('a'))]).isInLine, false);
});

test('FC4 an error object inside the stream is seen', () => {
  assert.equal(meterAll([new TextEncoder().encode('data: {"error":{"message":"x"}}\n\n')]).hasError, true);
  assert.equal(meterAll([new TextEncoder().encode(chunk('{"error":1}'))]).hasError, false);
});

test('FC6 an event of 5 MB passes unseen and the meter holds no copy of it', () => {
  const meter = makeStreamMeter(chatReported);
  const block = Buffer.from('x'.repeat(65_536));
  meter.push(Buffer.from('data: {"choices":[{"delta":{"content":"'));
  for (let count = 0; count < 80; count += 1) meter.push(block);
  meter.push(Buffer.from(`"}}]}\n\n${USAGE}`));
  const metered = meter.result();
  assert.ok(metered.eventTokens > 262_144, 'a line that is too long to be looked into is estimated by its size');
  assert.equal(metered.usage?.promptTokens, 7);
});

test('FC7 usage that cannot be counts as not reported, so that the estimate stands', () => {
  for (const bad of ['1e300', '1e9', '-5', '"9"', '1.5', 'true', '{}']) {
    const body = makeBodyMeter(chatReported);
    body.push(
      Buffer.from(
        `{"model":"a\\u0000b","usage":{"prompt_tokens":9,"completion_tokens":${bad},"prompt_tokens_details":null}}`,
      ),
    );
    assert.deepEqual([body.result().usage, body.result().servedModel], [undefined, 'ab'], bad);
    const stream = meterAll([Buffer.from(`${chunk('a')}data: {"usage":{"prompt_tokens":${bad}}}\n\n`)]);
    assert.deepEqual([stream.usage, tokensOf(stream, 400).promptTokens], [undefined, 100], bad);
    const broken = MESSAGES.replace('"output_tokens":7', `"output_tokens":${bad}`);
    assert.equal(meterAll([Buffer.from(broken)], messagesReported).usage, undefined, bad);
  }
});

test('FC6 an event is estimated by its size, however it is cut and also when it is too long to be looked into', () => {
  const large = Buffer.from(chunk('x'.repeat(4_000_000)));
  for (const places of [[], [100, 5_000, 1_500_000, 3_999_000]]) {
    const { completionTokens } = tokensOf(meterAll(cut(large.toString(), places)), 4);
    assert.ok(completionTokens > 999_000 && completionTokens < 1_001_000, `${completionTokens}`);
  }
});

test('a key that is written with escapes is read as any other, and one that is no text makes a body invalid', () => {
  const said = (key: string) =>
    chatReported.body(Buffer.from(`{"model":"m",${key}:{"prompt_tokens":7,"completion_tokens":3}}`));
  for (const key of ['"usage"', String.raw`"\u0075sage"`, String.raw`"usag\u0065"`]) {
    assert.deepEqual(said(key).usage, { promptTokens: 7, cachedTokens: 0, completionTokens: 3 }, key);
  }
  for (const key of [String.raw`"us\xge"`, '"us\nge"', '"usage']) assert.equal(said(key).isEnd, false, key);
});

test('without reported usage the tokens are estimated and marked so', () => {
  const metered = meterAll([new TextEncoder().encode(chunk('a') + chunk('b'))]);
  assert.deepEqual(tokensOf(metered, 400), {
    promptTokens: 100,
    cachedTokens: 0,
    completionTokens: 2,
    estimated: true,
  });
});

test('cost is rounded up to whole micro-USD', () => {
  const prices = { price_input_micro_usd: 150_000, price_output_micro_usd: 600_000 };
  assert.equal(costMicroUsd({ promptTokens: 1, cachedTokens: 0, completionTokens: 0 }, prices), 1);
  assert.equal(
    costMicroUsd({ promptTokens: 1_000_000, cachedTokens: 0, completionTokens: 1_000_000 }, prices),
    750_000,
  );
  assert.equal(costMicroUsd({ promptTokens: 0, cachedTokens: 0, completionTokens: 0 }, prices), 0);
});

test('B26 cached tokens cost their own price, and a call is estimated by its bytes and the output that it may have', () => {
  const prices = {
    price_input_micro_usd: 1_000_000,
    price_output_micro_usd: 2_000_000,
    price_cached_input_micro_usd: 100_000,
  };
  assert.equal(costMicroUsd({ promptTokens: 100, cachedTokens: 90, completionTokens: 1 }, prices), 10 + 9 + 2);
  const call = { requestBytes: 400, maxOutputTokens: 50, modelMaxOutput: 1_000 };
  assert.equal(estimateMicroUsd(call, prices), 100 + 100);
  assert.equal(estimateMicroUsd({ ...call, maxOutputTokens: undefined }, prices), 100 + 2_000);
});

const event = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const RESPONSES = [
  event('response.created', { type: 'response.created', response: { model: 'r1', usage: null } }),
  event('response.output_text.delta', { type: 'response.output_text.delta', delta: 'é "usage":{"input_tokens":9}' }),
  event('response.completed', {
    type: 'response.completed',
    response: {
      model: 'r1',
      usage: { input_tokens: 11, input_tokens_details: { cached_tokens: 4 }, output_tokens: 5 },
    },
  }),
].join('');
const MESSAGES = [
  event('message_start', {
    type: 'message_start',
    message: {
      model: 'c1',
      usage: { input_tokens: 10, cache_read_input_tokens: 4, cache_creation_input_tokens: 2, output_tokens: 1 },
    },
  }),
  event('content_block_delta', { type: 'content_block_delta', delta: { text: 'é' } }),
  event('message_delta', { type: 'message_delta', usage: { output_tokens: 7 } }),
  event('message_stop', { type: 'message_stop' }),
].join('');

test('FC6 streams of responses and messages, cut at any bytes, are metered as the whole ones', () => {
  const cases = [
    [RESPONSES, responsesReported, { promptTokens: 11, cachedTokens: 4, completionTokens: 5 }, 'r1'],
    [MESSAGES, messagesReported, { promptTokens: 16, cachedTokens: 4, completionTokens: 7 }, 'c1'],
  ] as const;
  for (const [text, reported, usage, model] of cases) {
    const whole = meterAll([Buffer.from(text)], reported);
    assert.deepEqual([whole.usage, whole.servedModel, whole.isEnded], [usage, model, true]);
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 30 }), (places) => {
        assert.deepEqual(meterAll(cut(text, places), reported), whole);
      }),
      { numRuns: 100 },
    );
  }
});

test('FC1 FC4 streams of responses and messages are over at their own end marks, and their errors are seen', () => {
  assert.equal(
    meterAll([Buffer.from(MESSAGES.slice(0, MESSAGES.indexOf('event: message_stop')))], messagesReported).isEnded,
    false,
  );
  assert.equal(
    meterAll([Buffer.from(RESPONSES.slice(0, RESPONSES.indexOf('event: response.completed')))], responsesReported)
      .isEnded,
    false,
  );
  const failed = meterAll(
    [Buffer.from(event('error', { type: 'error', error: { type: 'overloaded_error' } }))],
    messagesReported,
  );
  assert.deepEqual([failed.isEnded, failed.hasError], [false, true]);
  const nameless = meterAll(
    [Buffer.from('data: {"type":"response.failed","response":{"model":"r"}}\n\n')],
    responsesReported,
  );
  assert.deepEqual([nameless.isEnded, nameless.hasError], [true, true]);
});
