// The supervisor API on a real Postgres and a real HTTP server, for tests of settings. The guard lets one person in.
// Must not know any single test.
import { systemClock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import { listen } from '#base/http/listen.ts';
import { mount } from '#base/http/mount.ts';
import { createHttpServer } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import type { Registry } from '#controlplane/app/provider-ports.ts';
import { makeSettingsApp, type SettingsApp } from '#controlplane/app/settings.ts';
import { type KnobVariables, readSettingsEnvironment } from '#controlplane/app/settings-environment.ts';
import type { ReadEmbeddingStatus } from '#controlplane/app/settings-ports.ts';
import { makeRecordWrite } from '#controlplane/app/writes.ts';
import { makeGuard } from '#controlplane/http/guard.ts';
import { makeSettingsHandlers } from '#controlplane/http/settings.ts';
import { makeSettingsStore } from '#controlplane/store/settings-store.ts';
import type { Database } from '#controlplane/store/statement.ts';
import { makeWriteRecords } from '#controlplane/store/write-records.ts';
import * as routes from '#schema/rest/workspace-settings.ts';
import { providerInput } from '#schema/settings/providers.ts';

/** A provider of a registry, without keys. `models` are ids; one that begins with `-` is disabled, with `+` takes images. */
export const aRegisteredProvider = (id: string, models: readonly string[], enabled = true) => {
  const {
    api_key: _key,
    credential: _credential,
    ...definition
  } = providerInput.parse({
    id,
    kind: 'openai-compatible',
    base_url: 'https://models.example/v1',
    models: models.map((name) => ({
      id: name.replace(/^[-+]/, ''),
      enabled: !name.startsWith('-'),
      ...(name.startsWith('+') ? { input: ['text', 'image'] } : {}),
    })),
    enabled,
  });
  return { ...definition, keys: [], generation: 1 };
};

/** The registry that tests of settings judge names with. */
export const SETTINGS_REGISTRY: Registry = {
  generation: 1,
  providers: [
    aRegisteredProvider('acme', ['large', 'small', '-old', '+eyes']),
    aRegisteredProvider('closed', ['large'], false),
    aRegisteredProvider('env', ['main']),
  ],
};

/** What an API is made with. */
export type SettingsApiOptions = Readonly<{
  variables?: KnobVariables;
  embeddingStatus?: ReadEmbeddingStatus;
  environmentModel?: string | null;
}>;

/** One answer. `etag` is null when there is none. */
export type Reply = Readonly<{ status: number; etag: string | null; body: Record<string, unknown> }>;

/** A listening supervisor API. */
export type SettingsApi = Readonly<{
  app: SettingsApp;
  /** Sends JSON, or a text as it is. */
  send: (method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>) => Promise<Reply>;
  /** While true, the registry cannot be read. */
  breakRegistry: (isBroken: boolean) => void;
  stop: () => Promise<unknown>;
}>;

const NO_EMBEDDING = { model: null, reachable: null, last_error: null, vector_size: null, checked_at: null };

/** Starts it over a database. */
export const startSettingsApi = async (database: Database, options: SettingsApiOptions = {}): Promise<SettingsApi> => {
  let isRegistryBroken = false;
  const app = makeSettingsApp({
    store: makeSettingsStore(database),
    environment: readSettingsEnvironment(options.variables ?? {}),
    readRegistry: async () => {
      if (!isRegistryBroken) return SETTINGS_REGISTRY;
      throw new UnavailableError('registry_unavailable', 'the provider registry cannot be read now');
    },
    embeddingStatus: options.embeddingStatus ?? (async () => NO_EMBEDDING),
    environmentModel: options.environmentModel ?? null,
    clock: systemClock,
  });
  const guard = makeGuard({
    authenticate: async () => ({ kind: 'user', username: 'ann', uid: 'u', groups: [], extra: {} }),
    authorize: async () => undefined,
    takeCall: () => undefined,
    readState: async () => undefined,
    recordWrite: makeRecordWrite({ records: makeWriteRecords(database), onLost: () => undefined }),
    observe: { authenticated: () => undefined, denied: () => undefined },
  });
  const log = createLogger({ level: 'error', write: () => undefined });
  const server = createHttpServer({ listener: 'public', log, clock: systemClock, observe: () => undefined });
  const handlers = makeSettingsHandlers(app);
  mount(server, routes.getSupervisorRoute, handlers.getSupervisor, guard);
  mount(server, routes.putSupervisorRoute, handlers.putSupervisor, guard);
  mount(server, routes.getEffectiveSettingsRoute, handlers.getEffectiveSettings, guard);
  const listening = await listen(server, { port: 0, host: '127.0.0.1' });
  return {
    app,
    send: async (method, path, body, headers = {}) => {
      const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
      const response = await fetch(`${listening.url}/v1/workspace/${path}`, {
        method,
        headers: { ...(text === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(text === undefined ? {} : { body: text }),
      });
      return {
        status: response.status,
        etag: response.headers.get('etag'),
        body: (await response.json()) as Record<string, unknown>,
      };
    },
    breakRegistry: (isBroken) => {
      isRegistryBroken = isBroken;
    },
    stop: () => listening.stop(1_000),
  };
};
