// What is read of answers of providers that answer oddly: without end, with numbers that cannot be, with no JSON.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BeeuniError } from '#base/errors.ts';
import { completeMessage } from './anthropic.ts';
import { completeText, embeddingSize, listModels, type OpenAiEndpoint } from './openai.ts';

const MIB = 1_048_576;

/** An endpoint that answers a body of as many pieces as are asked for, and counts them. */
const endless = (piece: string, status = 200) => {
  const seen = { pieces: 0, isCancelled: false };
  const endpoint: OpenAiEndpoint = {
    baseUrl: 'http://provider.test/v1',
    apiKey: undefined,
    headers: {},
    timeoutMs: 10_000,
    fetch: async () =>
      new Response(
        new ReadableStream({
          pull: (controller) => {
            seen.pieces += 1;
            controller.enqueue(new TextEncoder().encode(piece));
          },
          cancel: () => {
            seen.isCancelled = true;
          },
        }),
        { status, headers: { 'content-type': 'application/json' } },
      ),
  };
  return { endpoint, seen };
};
const answering = (text: string): OpenAiEndpoint => ({
  ...endless('').endpoint,
  fetch: async () => new Response(text, { headers: { 'content-type': 'application/json' } }),
});
const errorOf = async (work: Promise<unknown>): Promise<BeeuniError> => {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  assert.ok(error instanceof BeeuniError, String(error));
  return error;
};
const question = { model: 'm', system: 's', user: 'u', maxOutputTokens: 10, isReasoning: false };
const never = new AbortController().signal;
const asks = {
  listModels: (endpoint: OpenAiEndpoint) => listModels(endpoint, never),
  completeText: (endpoint: OpenAiEndpoint) => completeText(endpoint, question, never),
  completeMessage: (endpoint: OpenAiEndpoint) => completeMessage(endpoint, question, never),
  embeddingSize: (endpoint: OpenAiEndpoint) => embeddingSize(endpoint, { model: 'm', text: 't' }, never),
};

describe('answers of providers', () => {
  for (const [name, ask] of Object.entries(asks)) {
    it(`FC9 ${name} reads no answer without end, and says so`, async () => {
      const { endpoint, seen } = endless('x'.repeat(MIB / 4));
      const error = await errorOf(ask(endpoint));
      assert.equal(error.code, 'provider_failed');
      assert.match(error.message, /the answer is above \d+ bytes/);
      assert.ok(seen.pieces <= 18, `${seen.pieces} pieces were read`);
      assert.ok(seen.isCancelled);
    });

    it(`FC9 ${name} drops the body of a refusal`, async () => {
      const { endpoint, seen } = endless('x'.repeat(MIB), 401);
      assert.equal((await errorOf(ask(endpoint))).code, 'provider_auth_failed');
      assert.ok(seen.isCancelled && seen.pieces <= 2);
    });

    it(`FC7 ${name} says that an answer is not valid`, async () => {
      for (const text of ['<html>', '{"a":', 'null', '[]']) {
        const error = await errorOf(ask(answering(text)));
        assert.deepEqual([error.code, error.message], ['provider_failed', "the provider's answer is not valid"], text);
      }
    });
  }

  it('FC7 token counts that cannot be are taken as not reported', async () => {
    for (const bad of ['1e300', '-1', '"7"', '1.5', 'true', '[]', '9007199254740991']) {
      const chat = answering(
        `{"choices":[{"message":{"content":"t"}}],"usage":{"prompt_tokens":${bad},"completion_tokens":${bad}}}`,
      );
      const messages = answering(`{"content":[{"text":"t"}],"usage":{"input_tokens":${bad},"output_tokens":${bad}}}`);
      for (const answer of [await asks.completeText(chat), await asks.completeMessage(messages)]) {
        assert.deepEqual([answer.text, answer.promptTokens, answer.completionTokens], ['t', null, null], bad);
      }
    }
  });
});
