// Fills the registry's port for checking a provider: the openai client over the gateway's checked connections.
// Must not know where the key comes from.
import { listModels } from '#base/model/openai.ts';
import type { ListProviderModels } from '../app/provider-ports.ts';
import type { Upstreams } from './upstream.ts';

/** Asks a provider for its models within the smaller of its time limits and 30 s. */
export const makeListProviderModels =
  (upstreams: Upstreams): ListProviderModels =>
  (provider, apiKey, signal) =>
    listModels(
      {
        baseUrl: provider.base_url,
        apiKey,
        headers: provider.headers as Readonly<Record<string, string>>,
        timeoutMs: Math.min(provider.timeouts.first_byte_ms, 30_000),
        fetch: upstreams.fetchOf(provider),
      },
      signal,
    );
