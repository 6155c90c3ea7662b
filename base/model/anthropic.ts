// One short question to an endpoint of Anthropic's Messages API, with nothing but `fetch`. Must not know the registry, nor log
// or keep a key. Source: 20-control-plane §4.
import { UnavailableError } from '#base/errors.ts';
import { boundedFetch } from '#base/http/bounded-fetch.ts';
import {
  cannotBeReached,
  INVALID_ANSWER,
  MAX_TEXT_ANSWER_BYTES,
  type OpenAiEndpoint,
  slowDown,
  type TextAnswer,
  type TextRequest,
} from './openai.ts';
import { tokenCountOf } from './token-count.ts';

/** Version of the API that is asked. */
const VERSION = '2023-06-01';

const failed = (message: string, cause?: unknown): UnavailableError =>
  new UnavailableError('provider_failed', message, { cause });

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

/** The texts of an answer, joined; undefined when it has none. */
const textOf = (content: unknown): string | undefined => {
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((block: unknown) => objectOf(block)['text']).filter((text) => typeof text === 'string');
  return texts.length === 0 ? undefined : texts.join('');
};

/**
 * The answer to one question. `endpoint.baseUrl` ends before `/messages`. Errors, without the key: LimitError
 * `rate_limited`, UnavailableError.
 */
export const completeMessage = async (
  endpoint: OpenAiEndpoint,
  request: TextRequest,
  signal: AbortSignal,
): Promise<TextAnswer> => {
  let response: Response;
  try {
    response = await boundedFetch(endpoint.fetch, MAX_TEXT_ANSWER_BYTES)(`${endpoint.baseUrl}/messages`, {
      method: 'POST',
      headers: {
        ...endpoint.headers,
        'content-type': 'application/json',
        'anthropic-version': VERSION,
        ...(endpoint.apiKey === undefined ? {} : { 'x-api-key': endpoint.apiKey }),
      },
      body: JSON.stringify({
        model: request.model,
        max_tokens: request.maxOutputTokens,
        system: request.system,
        messages: [{ role: 'user', content: request.user }],
      }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(endpoint.timeoutMs)]),
    });
  } catch (error) {
    throw cannotBeReached(error);
  }
  if (response.status === 401 || response.status === 403) {
    throw new UnavailableError('provider_auth_failed', `the provider refused the key (HTTP ${response.status})`);
  }
  if (response.status === 429) throw slowDown(response.headers.get('retry-after'));
  if (!response.ok) throw failed(`the provider answered HTTP ${response.status}`);
  try {
    const body = objectOf(JSON.parse(await response.text()));
    const text = textOf(body['content']);
    if (text === undefined) throw new TypeError('the answer has no text');
    const usage = objectOf(body['usage']);
    return {
      text,
      servedModel: typeof body['model'] === 'string' ? body['model'].slice(0, 256) : null,
      promptTokens: tokenCountOf(usage['input_tokens']) ?? null,
      completionTokens: tokenCountOf(usage['output_tokens']) ?? null,
    };
  } catch (error) {
    throw failed(INVALID_ANSWER, error);
  }
};
