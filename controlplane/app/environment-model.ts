// The model that the environment of the control plane names, as a provider of the registry: it is registered at the start
// and follows the environment, its key included. Must not know files or variables. Source: chart value controlPlane.envModel.
import { ConflictError, NotFoundError } from '#base/errors.ts';
import { providerInput } from '#schema/settings/providers.ts';
import type { ProvidersApp } from './providers.ts';

/** Id of the provider that the environment names. */
export const ENV_PROVIDER = 'env';

/** The model of the environment. */
export type EnvironmentModel = Readonly<{ baseUrl: string; id: string; apiKey: string | undefined }>;

/** What registering needs. `readKey`: the key that is stored now; undefined for none, or one that cannot be opened. */
export type RegisterEnvironmentModelPorts = Readonly<{
  providers: Pick<ProvidersApp, 'get' | 'put'>;
  readKey: () => Promise<string | undefined>;
}>;

/** Registers the model unless it is there as it should be; true when something changed. Errors: those of `put`. */
export const registerEnvironmentModel = async (
  model: EnvironmentModel,
  { providers, readKey }: RegisterEnvironmentModelPorts,
): Promise<boolean> => {
  const known = await providers.get(ENV_PROVIDER).catch((error: unknown) => {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  });
  const isSame =
    known !== undefined &&
    known.base_url === model.baseUrl.replace(/\/+$/, '') &&
    known.models.some(({ id }) => id === model.id) &&
    (await readKey()) === model.apiKey;
  if (isSame) return false;
  const keys = model.apiKey === undefined ? [] : [{ id: 'default', value: model.apiKey }];
  const { id: _id, ...input } = providerInput.parse({
    id: ENV_PROVIDER,
    kind: 'openai-compatible',
    base_url: model.baseUrl,
    credential: { api_keys: keys },
    models: [{ id: model.id }],
  });
  try {
    await providers.put(ENV_PROVIDER, input, true);
    return true;
  } catch (error) {
    // Another replica starts at the same moment, from the same environment.
    if (error instanceof ConflictError) return false;
    throw error;
  }
};
