// What the meter sees of a stream, however it is cut.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { costMicroUsd, type Metered, makeJsonMeter, makeSseMeter, tokensOf } from './meter.ts';

const chunk = (delta: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ delta: { content: delta }, finish_reason: finish }] })}\n\n`;
const USAGE = `data: ${JSON.stringify({ model: 'm', choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } } })}\n\n`;
const WHOLE = `: comment\r\n\r\n${chunk('é😀 "finish_reason":"stop"')}${chunk('x', 'stop')}${USAGE}data: [DONE]\n\n`;

const meterAll = (parts: readonly Uint8Array[]): Metered => {
  const meter = makeSseMeter();
  for (const part of parts) meter.push(part);
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
  assert.equal(whole.events, 3);
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
  const meter = makeSseMeter();
  const block = new TextEncoder().encode('x'.repeat(65_536));
  meter.push(new TextEncoder().encode('data: {"choices":[{"delta":{"content":"'));
  for (let count = 0; count < 80; count += 1) meter.push(block);
  meter.push(new TextEncoder().encode(`"}}]}\n\n${USAGE}`));
  const metered = meter.result();
  assert.equal(metered.events, 2);
  assert.equal(metered.usage?.promptTokens, 7);
});

test('hostile usage values count as nothing', () => {
  const meter = makeJsonMeter();
  meter.push(
    new TextEncoder().encode(
      '{"model":"a\\u0000b","usage":{"prompt_tokens":"9","completion_tokens":-5,"prompt_tokens_details":null}}',
    ),
  );
  assert.deepEqual(meter.result().usage, { promptTokens: 0, cachedTokens: 0, completionTokens: 0 });
  assert.equal(meter.result().servedModel, 'ab');
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
  assert.equal(costMicroUsd({ promptTokens: 1, completionTokens: 0 }, prices), 1);
  assert.equal(costMicroUsd({ promptTokens: 1_000_000, completionTokens: 1_000_000 }, prices), 750_000);
  assert.equal(costMicroUsd({ promptTokens: 0, completionTokens: 0 }, prices), 0);
});
