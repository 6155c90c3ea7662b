// Puts together the workspace settings: their table, their routes, the state of the embedding model, and role calls.
// Must not know projects, sessions or HTTP servers.
import { makeEmbeddingStatus } from '../app/embedding-status.ts';
import type { ReadProviderKeys } from '../app/provider-ports.ts';
import type { RegistryReader } from '../app/registry.ts';
import { makeSettingsApp, type SettingsApp } from '../app/settings.ts';
import { makeRoleCalls, type RoleCalls } from '../gateway/role-calls.ts';
import type { Upstreams } from '../gateway/upstream.ts';
import { makeSettingsHandlers, type SettingsHandlers } from '../http/settings.ts';
import { makeSettingsStore } from '../store/settings-store.ts';
import type { Basics } from './basics.ts';

/** What the settings need besides. `environmentModel`: the model that the environment names. */
export type SettingsWiring = Pick<Basics, 'config' | 'clock' | 'log' | 'database'> &
  Readonly<{
    registry: RegistryReader;
    readKeys: ReadProviderKeys;
    upstreams: Upstreams;
    environmentModel: string | undefined;
  }>;

/** The settings' side. */
export type SettingsSide = Readonly<{ app: SettingsApp; calls: RoleCalls; handlers: SettingsHandlers }>;

/** Puts it together, and reports once what of the environment does not count. Source: 40-settings B12. */
export const wireSettings = (wiring: SettingsWiring): SettingsSide => {
  const { config, clock, log, registry } = wiring;
  for (const { name, message } of config.settingsEnvironment.problems) {
    log.warn('a setting of the environment does not count', { name, reason: message });
  }
  const { readKeys, upstreams } = wiring;
  const calls = makeRoleCalls({ readRegistry: registry.cached, readKeys, upstreams });
  const app = makeSettingsApp({
    store: makeSettingsStore(wiring.database),
    environment: config.settingsEnvironment,
    readRegistry: registry.fresh,
    embeddingStatus: makeEmbeddingStatus({
      model: config.settings.BEEUNI_EMBEDDING_MODEL ?? null,
      probe: calls.probeEmbedding,
      clock,
    }),
    environmentModel: wiring.environmentModel ?? null,
    clock,
  });
  return { app, calls, handlers: makeSettingsHandlers(app) };
};
