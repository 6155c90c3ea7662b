// Issues the settings of a run: budgets and role models as they count when its turn is taken. Pure but for its ports.
// Must not know SQL or daemons. Source: 40-settings B19, B20, 70-joins J3.
import type { Clock } from '#base/clock.ts';
import { MODEL_ROLES, type ModelRole } from '#schema/settings/roles.ts';
import { pinnedText, type RunSettings } from '#schema/settings/run-settings.ts';
import type { FindProject, FindSessionByUid } from './ports.ts';
import type { RunModel } from './project-config.ts';
import type { ReadRegistry } from './provider-ports.ts';
import type { RoleRegistry } from './role-models.ts';
import { resolveRoles } from './role-models.ts';
import type { StoredSettings } from './saved-settings.ts';
import type { PinSettings } from './session-records.ts';
import type { SettingsApp } from './settings.ts';

/** What pins are made from. */
export type RunSettingsPorts = Readonly<{
  settings: Pick<SettingsApp, 'currentOf'>;
  readRegistry: ReadRegistry;
  /** The model of a run; null when there is none. */
  runModel: RunModel;
  findSessionByUid: FindSessionByUid;
  findProject: FindProject;
  environmentModel: string | null;
  sha256: (text: string) => string;
  clock: Clock;
}>;

/**
 * Reads all that the next run of a session may need and gives back what pins its settings inside the transaction that
 * takes its turn. Errors: UnavailableError.
 */
export type PreparePin = (sessionUid: string) => Promise<PinSettings>;

/** The snapshot of a run. */
export const snapshotOf = (
  settings: Pick<SettingsApp, 'currentOf'>,
  stored: StoredSettings,
  candidates: Readonly<{ run: string | null; environment: string | null }>,
  registry: RoleRegistry,
  sha256: (text: string) => string,
): RunSettings => {
  const { revision, budgets, roles: slots } = settings.currentOf(stored);
  const choices = resolveRoles({ slots, ...candidates }, registry);
  const roles = Object.fromEntries(MODEL_ROLES.map((role) => [role, choices[role].model])) as Record<
    ModelRole,
    string | null
  >;
  return { revision, hash: sha256(pinnedText({ budgets, roles })), budgets, roles };
};

/** Makes the function. */
export const makePreparePin =
  (ports: RunSettingsPorts): PreparePin =>
  async (sessionUid) => {
    const session = ports.findSessionByUid(sessionUid);
    const project = session && ports.findProject(session.metadata.namespace, session.spec.projectRef.name);
    const { providers } = await ports.readRegistry();
    const allowed = project?.spec.models?.allowed;
    const modelOf = session && project ? await ports.runModel(session, project) : () => null;
    const at = new Date(ports.clock.nowMs()).toISOString();
    return (stored, prompt) => {
      const candidates = { run: modelOf(prompt), environment: ports.environmentModel };
      return { at, settings: snapshotOf(ports.settings, stored, candidates, { providers, allowed }, ports.sha256) };
    };
  };
