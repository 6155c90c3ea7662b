// The only file that runs the `openai` client: for reaching a provider the way its own clients do.
// Must not know the registry, nor log or keep a key. Source: 20-control-plane §4.
import OpenAI, { APIConnectionError, APIConnectionTimeoutError, APIError } from 'openai';
import { UnavailableError } from '#base/errors.ts';

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

const describe = (error: unknown): UnavailableError => {
  if (error instanceof APIConnectionTimeoutError) {
    return new UnavailableError('provider_timed_out', 'the provider did not answer in time', { cause: error });
  }
  if (error instanceof APIConnectionError) {
    const cause = error.cause instanceof Error ? `: ${rootOf(error.cause).message}` : '';
    return new UnavailableError('provider_failed', `the provider could not be reached${cause}`, { cause: error });
  }
  if (error instanceof APIError && (error.status === 401 || error.status === 403)) {
    return new UnavailableError('provider_auth_failed', `the provider refused the key (HTTP ${error.status})`, {
      cause: error,
    });
  }
  if (error instanceof APIError && error.status !== undefined) {
    return new UnavailableError('provider_failed', `the provider answered HTTP ${error.status}`, { cause: error });
  }
  return new UnavailableError('provider_failed', 'the answer of the provider is not a list of models', {
    cause: error,
  });
};

const rootOf = (error: Error): Error => {
  let at = error;
  for (let depth = 0; at.cause instanceof Error && depth < 8; depth += 1) at = at.cause;
  return at;
};

/** The names of a provider's models, 2,000 at most. Errors: UnavailableError, worded for an administrator, without the key. */
export const listModels = async (endpoint: OpenAiEndpoint, signal: AbortSignal): Promise<readonly string[]> => {
  const client = new OpenAI({
    baseURL: endpoint.baseUrl,
    // The client refuses to exist without a key; an endpoint without one ignores the header.
    apiKey: endpoint.apiKey ?? 'none',
    organization: null,
    project: null,
    defaultHeaders: { ...endpoint.headers },
    timeout: endpoint.timeoutMs,
    maxRetries: 0,
    fetch: endpoint.fetch,
    logLevel: 'off',
  });
  const names: string[] = [];
  try {
    for await (const model of client.models.list({ signal })) {
      if (typeof model.id === 'string' && model.id.length <= 256) names.push(model.id);
      if (names.length >= MAX_MODELS) break;
    }
  } catch (error) {
    throw describe(error);
  }
  return names;
};
