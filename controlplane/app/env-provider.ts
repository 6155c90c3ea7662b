// The one model that an installation may name in its settings instead of the registry. Pure.
// Must not know where settings or keys come from.
import { providerInput } from '#schema/settings/providers.ts';
import type { RegisteredProvider } from './provider-ports.ts';

/** Id of the provider that the settings make. A provider of this id in the registry is hidden by it. */
export const ENV_PROVIDER_ID = 'env';

/** The provider of the settings: `env`, with one model that is called `env/<id>`. */
export const envProvider = (model: Readonly<{ baseUrl: string; id: string }>): RegisteredProvider => {
  const { api_key: _key, ...provider } = providerInput.parse({
    id: ENV_PROVIDER_ID,
    kind: 'openai-compatible',
    base_url: model.baseUrl,
    models: [{ id: model.id }],
  });
  return { ...provider, sealedKey: undefined, generation: 0 };
};

/** Name of its model. */
export const envModelName = (model: Readonly<{ id: string }>): string => `${ENV_PROVIDER_ID}/${model.id}`;
