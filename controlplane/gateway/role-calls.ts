// Calls that the control plane makes itself for a role: a short answer, or the size of a vector, over the gateway's checked
// connections and the provider's own keys. Must not know what the answer is for. Source: 40-settings B4.

import { UnavailableError } from '#base/errors.ts';
import { completeText, embeddingSize, type OpenAiEndpoint, type TextAnswer } from '#base/model/openai.ts';
import { checkModelName } from '#schema/rules/check-model.ts';
import type { ReadProviderKeys, ReadRegistry, RegisteredProvider } from '../app/provider-ports.ts';
import type { Upstreams } from './upstream.ts';

/** What calls are made with. */
export type RoleCallPorts = Readonly<{
  readRegistry: ReadRegistry;
  readKeys: ReadProviderKeys;
  upstreams: Upstreams;
}>;

/** One question to `model`, a registered `provider/model`. */
export type RoleQuestion = Readonly<{ model: string; system: string; user: string; maxOutputTokens: number }>;

/** The calls. Errors of both: UnavailableError whose message holds no key. */
export type RoleCalls = Readonly<{
  ask: (question: RoleQuestion, signal: AbortSignal) => Promise<TextAnswer>;
  /** Size of the vector that the model makes of a word. */
  probeEmbedding: (model: string, signal: AbortSignal) => Promise<number>;
}>;

/** Longest wait for a provider. Units: milliseconds. */
const LIMIT_MS = 60_000;

/** Makes the calls. */
export const makeRoleCalls = (ports: RoleCallPorts): RoleCalls => {
  const found = async (name: string): Promise<Readonly<{ provider: RegisteredProvider; model: string }>> => {
    const { providers } = await ports.readRegistry();
    const verdict = checkModelName(name, providers);
    const provider = verdict.valid ? providers.find(({ id }) => id === verdict.provider) : undefined;
    if (!verdict.valid || provider === undefined) {
      throw new UnavailableError('provider_failed', verdict.valid ? 'the provider is gone' : verdict.message);
    }
    return { provider, model: verdict.model };
  };

  const over = async <T>(name: string, call: (endpoint: OpenAiEndpoint, model: string) => Promise<T>): Promise<T> => {
    const { provider, model } = await found(name);
    const [key] = await ports.readKeys(provider);
    const endpoint = {
      baseUrl: provider.base_url,
      apiKey: key?.secret,
      headers: provider.headers as Readonly<Record<string, string>>,
      timeoutMs: Math.min(provider.timeouts.total_ms, LIMIT_MS),
      fetch: ports.upstreams.fetchOf(provider),
    };
    try {
      return await call(endpoint, model);
    } catch (error) {
      if (!(error instanceof Error) || key === undefined || !error.message.includes(key.secret)) throw error;
      throw new UnavailableError('provider_failed', error.message.replaceAll(key.secret, '[key]'));
    }
  };

  return {
    ask: ({ model: name, ...question }, signal) =>
      over(name, (endpoint, model) => completeText(endpoint, { ...question, model }, signal)),
    probeEmbedding: (name, signal) =>
      over(name, (endpoint, model) => embeddingSize(endpoint, { model, text: 'ping' }, signal)),
  };
};
