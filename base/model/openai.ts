// The only file that runs the `openai` client: for reaching a provider the way its own clients do.
// Must not know the registry, nor log or keep a key. Source: 20-control-plane §4.
import OpenAI, { APIConnectionError, APIConnectionTimeoutError, APIError } from 'openai';
import { type BeeuniError, LimitError, UnavailableError } from '#base/errors.ts';
import { boundedFetch } from '#base/http/bounded-fetch.ts';
import { retryAfterMs } from '#base/retry-after.ts';
import { tokenCountOf } from './token-count.ts';

/** How to reach an OpenAI-compatible endpoint. `fetch` decides which addresses are connected to. */
export type OpenAiEndpoint = Readonly<{
  /** Ends before `/models`. */
  baseUrl: string;
  apiKey: string | undefined;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  fetch: typeof globalThis.fetch;
}>;

/** Most names that are read from a provider's list. */
const MAX_MODELS = 2_000;
/** Most that is read of a list, and of any other answer. Units: bytes. */
const MAX_LIST_BYTES = 4_194_304;
export const MAX_TEXT_ANSWER_BYTES = 1_048_576;

/** What an administrator reads of an answer that is no JSON, or not what the API says. */
export const INVALID_ANSWER = "the provider's answer is not valid";

/** An endpoint asks to slow down; `retryAfter` is its header of that name: seconds, or nothing that counts. */
export const slowDown = (retryAfter: string | null | undefined, cause?: unknown): LimitError => {
  const waitMs = retryAfterMs(retryAfter);
  return new LimitError('rate_limited', 'the provider asks to slow down (HTTP 429)', {
    cause,
    ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
  });
};

const describe = (error: unknown): BeeuniError => {
  if (error instanceof APIConnectionTimeoutError) {
    return new UnavailableError('provider_timed_out', 'the provider did not answer in time', { cause: error });
  }
  if (error instanceof APIConnectionError) return cannotBeReached(error);
  if (error instanceof APIError && (error.status === 401 || error.status === 403)) {
    return new UnavailableError('provider_auth_failed', `the provider refused the key (HTTP ${error.status})`, {
      cause: error,
    });
  }
  if (error instanceof APIError && error.status === 429) return slowDown(error.headers?.get('retry-after'), error);
  if (error instanceof APIError && error.status !== undefined) {
    return new UnavailableError('provider_failed', `the provider answered HTTP ${error.status}`, { cause: error });
  }
  return new UnavailableError('provider_failed', INVALID_ANSWER, { cause: error });
};

const rootOf = (error: Error): Error => {
  let at = error;
  for (let depth = 0; at.cause instanceof Error && depth < 8; depth += 1) at = at.cause;
  return at;
};

/** Why nothing came of a call, by the error at the end of the chain: one of the network, or an answer that is too long. */
export const cannotBeReached = (error: unknown): UnavailableError => {
  const root = error instanceof Error ? rootOf(error) : undefined;
  if (root instanceof RangeError) {
    return new UnavailableError('provider_failed', `the provider answers too much: ${root.message}`, { cause: error });
  }
  const why = root === undefined || root === error ? '' : `: ${root.message}`;
  return new UnavailableError('provider_failed', `the provider could not be reached${why}`, { cause: error });
};

const clientOf = (endpoint: OpenAiEndpoint, limitBytes: number): OpenAI =>
  new OpenAI({
    baseURL: endpoint.baseUrl,
    // The client refuses to exist without a key; an endpoint without one ignores the header.
    apiKey: endpoint.apiKey ?? 'none',
    organization: null,
    project: null,
    // Who is asked with a key of another header is sent no second one.
    defaultHeaders: { ...endpoint.headers, ...('x-api-key' in endpoint.headers ? { authorization: null } : {}) },
    timeout: endpoint.timeoutMs,
    maxRetries: 0,
    fetch: boundedFetch(endpoint.fetch, limitBytes),
    logLevel: 'off',
  });

/**
 * The names of a provider's models, 2,000 at most. Errors: UnavailableError and LimitError `rate_limited`, worded for an
 * administrator, without the key.
 */
export const listModels = async (endpoint: OpenAiEndpoint, signal: AbortSignal): Promise<readonly string[]> => {
  const client = clientOf(endpoint, MAX_LIST_BYTES);
  const names: string[] = [];
  try {
    // The client's own list takes an answer without one for an empty list.
    const answer = await client.get<Readonly<{ data?: unknown }> | null>('/models', { signal });
    if (!Array.isArray(answer?.data)) throw new TypeError('the answer has no list');
    for (const model of answer.data as readonly (Readonly<{ id?: unknown }> | null)[]) {
      if (typeof model?.id === 'string' && model.id.length <= 256) names.push(model.id);
      if (names.length >= MAX_MODELS) break;
    }
  } catch (error) {
    throw describe(error);
  }
  return names;
};

/** One short question without tools. `isReasoning`: the model thinks before it answers, which counts as output. */
export type TextRequest = Readonly<{
  model: string;
  system: string;
  user: string;
  maxOutputTokens: number;
  isReasoning: boolean;
}>;
/** Its answer. Units: tokens; null where the provider did not say. */
export type TextAnswer = Readonly<{
  text: string;
  servedModel: string | null;
  promptTokens: number | null;
  completionTokens: number | null;
}>;

/**
 * The answer to one question. Errors, without the key: LimitError `rate_limited` when the endpoint asks to slow down;
 * UnavailableError, with `provider_failed` for an answer without text.
 */
export const completeText = async (
  endpoint: OpenAiEndpoint,
  request: TextRequest,
  signal: AbortSignal,
): Promise<TextAnswer> => {
  try {
    const answer = await clientOf(endpoint, MAX_TEXT_ANSWER_BYTES).chat.completions.create(
      {
        model: request.model,
        // Models that reason refuse the older field, and others may not know the newer one.
        ...(request.isReasoning
          ? { max_completion_tokens: request.maxOutputTokens }
          : { max_tokens: request.maxOutputTokens }),
        messages: [
          { role: 'system', content: request.system },
          { role: 'user', content: request.user },
        ],
      },
      { signal },
    );
    // What came is not what the client's types promise: the other end may be anything.
    const text: unknown = answer?.choices?.[0]?.message?.content;
    if (typeof text !== 'string') throw new TypeError('the answer has no text');
    return {
      text,
      servedModel: typeof answer.model === 'string' ? answer.model.slice(0, 256) : null,
      promptTokens: tokenCountOf(answer?.usage?.prompt_tokens) ?? null,
      completionTokens: tokenCountOf(answer?.usage?.completion_tokens) ?? null,
    };
  } catch (error) {
    throw describe(error);
  }
};

/** Numbers in the vector that a model makes of a text. Errors: as completeText. */
export const embeddingSize = async (
  endpoint: OpenAiEndpoint,
  request: Readonly<{ model: string; text: string }>,
  signal: AbortSignal,
): Promise<number> => {
  try {
    const answer = await clientOf(endpoint, MAX_TEXT_ANSWER_BYTES).embeddings.create(
      { model: request.model, input: request.text, encoding_format: 'float' },
      { signal },
    );
    const vector: unknown = answer?.data?.[0]?.embedding;
    if (!Array.isArray(vector) || vector.length === 0) throw new TypeError('the answer has no vector');
    return vector.length;
  } catch (error) {
    throw describe(error);
  }
};
