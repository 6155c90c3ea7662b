// Puts together the workspace settings: their table, their routes, the state of the embedding model, and titles.
// Must not know HTTP servers or how sessions run.
import { NotFoundError } from '#base/errors.ts';
import { effectiveFlags, GATEWAY_OFF_TEXT } from '#schema/rules/effective-flags.ts';
import { type RoleChoice, resolveRole } from '#schema/rules/resolve-role.ts';
import { makeFindLimits } from '../app/call-limits.ts';
import { makeEmbeddingStatus } from '../app/embedding-status.ts';
import type { ReadProviderKeys } from '../app/provider-ports.ts';
import type { RegistryReader } from '../app/registry.ts';
import { whyUnusable } from '../app/role-models.ts';
import { makeSettingsApp, type SettingsApp } from '../app/settings.ts';
import { makeTitles, type Titles } from '../app/titles.ts';
import type { KeyPools } from '../gateway/key-pool.ts';
import { makeRoleCalls } from '../gateway/role-calls.ts';
import type { Upstreams } from '../gateway/upstream.ts';
import { makeSettingsHandlers, type SettingsHandlers } from '../http/settings.ts';
import { makeSettingsStore } from '../store/settings-store.ts';
import { makeTitleStore, readTitles } from '../store/titles.ts';
import type { Basics } from './basics.ts';
import { type Metering, observeCalls } from './gateway.ts';

/** What the settings need besides. `environmentModel`: the model that the environment names. */
export type SettingsWiring = Pick<
  Basics,
  'config' | 'clock' | 'random' | 'log' | 'database' | 'resources' | 'instruments'
> &
  Readonly<{
    registry: RegistryReader;
    readKeys: ReadProviderKeys;
    keyPools: KeyPools;
    upstreams: Upstreams;
    metering: Pick<Metering, 'usage' | 'budgets'>;
    newId: () => string;
    environmentModel: string | undefined;
  }>;

/** The settings' side. */
export type SettingsSide = Readonly<{
  app: SettingsApp;
  handlers: SettingsHandlers;
  titles: Titles;
  /** Titles of sessions that have one, by uid. */
  readTitles: (sessionUids: readonly string[]) => Promise<ReadonlyMap<string, string>>;
}>;

/** What a project without the gateway gets: its prompts go to its own providers alone. Source: D8. */
const GATEWAY_OFF: RoleChoice = {
  model: null,
  step: null,
  reason: `off: ${GATEWAY_OFF_TEXT}`,
  passed: [],
};

/** Puts it together, and reports once what of the environment does not count. Source: 40-settings B12. */
export const wireSettings = (wiring: SettingsWiring): SettingsSide => {
  const { config, clock, log, registry, resources, database } = wiring;
  for (const { name, message } of config.settingsEnvironment.problems) {
    log.warn('a setting of the environment does not count', { name, reason: message });
  }
  const { readKeys, keyPools, upstreams, newId } = wiring;
  const calls = makeRoleCalls({
    readRegistry: registry.cached,
    readKeys,
    keyPools,
    upstreams,
    ...wiring.metering,
    findLimits: makeFindLimits(resources.sessions.findByUid, resources.projects.findByUid),
    clock,
    newId,
    observe: observeCalls(wiring.instruments),
  });
  const app = makeSettingsApp({
    store: makeSettingsStore(database),
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
  const titles = makeTitles({
    store: makeTitleStore(database),
    chooseModel: async (sessionUid) => {
      const session = resources.sessions.findByUid(sessionUid);
      const project = session && resources.projects.find(session.metadata.namespace, session.spec.projectRef.name);
      if (project === undefined) return undefined;
      if (!effectiveFlags(project.spec.features, config.flags).llm_gateway.value) return GATEWAY_OFF;
      const [{ roles: slots }, { providers }] = await Promise.all([app.current(), registry.cached()]);
      const candidates = { slots, run: null, environment: wiring.environmentModel ?? null };
      return resolveRole('title', candidates, whyUnusable({ providers, allowed: project.spec.models?.allowed }));
    },
    ask: (sessionUid, question, signal) => {
      const session = resources.sessions.findByUid(sessionUid);
      const { namespace = '', name = '' } = session?.metadata ?? {};
      const project = session && resources.projects.find(namespace, session.spec.projectRef.name);
      if (project === undefined) throw new NotFoundError('session_not_found', `the session ${name} is gone`);
      return calls.ask({ namespace, projectUid: project.metadata.uid, sessionUid }, question, signal);
    },
    clock,
    random: wiring.random,
    log,
  });
  return {
    app,
    handlers: makeSettingsHandlers(app),
    titles,
    readTitles: async (uids) =>
      new Map((await database.query(readTitles(uids))).map(({ session_uid, title }) => [session_uid, title])),
  };
};
