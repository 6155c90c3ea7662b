// Fills the registry's port for checking a provider: the openai client over the gateway's checked connections.
// Must not know where the key comes from.
import { listModels } from '#base/model/openai.ts';
import type { ListProviderModels, RegisteredProvider } from '../app/provider-ports.ts';
import type { Upstreams } from './upstream.ts';

/** Version of the API that providers of the kind `anthropic` are asked in. */
const ANTHROPIC_VERSION = '2023-06-01';

/** The provider's own headers, and the key as its kind expects it. */
const headersOf = (
  { kind, headers }: Pick<RegisteredProvider, 'kind' | 'headers'>,
  apiKey: string | undefined,
): Readonly<Record<string, string>> => ({
  ...(headers as Readonly<Record<string, string>>),
  ...(kind === 'anthropic' ? { 'anthropic-version': ANTHROPIC_VERSION } : {}),
  ...(kind === 'anthropic' && apiKey !== undefined ? { 'x-api-key': apiKey } : {}),
});

/** Asks a provider for its models within the smaller of its time limits and 30 s. */
export const makeListProviderModels =
  (upstreams: Upstreams): ListProviderModels =>
  (provider, apiKey, signal) =>
    listModels(
      {
        baseUrl: provider.base_url,
        apiKey,
        headers: headersOf(provider, apiKey),
        timeoutMs: Math.min(provider.timeouts.first_byte_ms, 30_000),
        fetch: upstreams.fetchOf(provider),
      },
      signal,
    );
