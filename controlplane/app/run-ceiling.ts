// The ceiling of the model requests of a run, from the settings that its turn was given. Must not know SQL or the gateway.
// Source: 40-settings B13, B19, 20-control-plane §5.
import { budgetsOfRun, type RunSettings } from '#schema/settings/run-settings.ts';
import type { SettingsApp } from './settings.ts';

/** Settings of a turn of a session; undefined when the session has no such turn, null when it was taken without. */
export type FindTurnSettings = (sessionUid: string, turnId: string) => Promise<RunSettings | null | undefined>;

/** Largest request that the turn may send; outside of any turn, and while the database is away, what counts now. Units: bytes. */
export type CeilingOfRun = (sessionUid: string, turnId: string | null) => number | Promise<number>;

/** Turns that are remembered; a snapshot never changes. */
const MAX_KNOWN = 4_096;

/** Makes the function. */
export const makeCeilingOfRun = (
  ports: Readonly<{ findTurnSettings: FindTurnSettings; settings: Pick<SettingsApp, 'current'> }>,
): CeilingOfRun => {
  const known = new Map<string, number>();
  const current = async (): Promise<number> => (await ports.settings.current()).budgets.max_model_request_bytes;

  const find = async (sessionUid: string, turnId: string, key: string): Promise<number> => {
    const pinned = await ports.findTurnSettings(sessionUid, turnId).catch(() => undefined);
    if (pinned === undefined) return current();
    const ceiling = budgetsOfRun(pinned).max_model_request_bytes;
    if (known.size >= MAX_KNOWN) {
      const [oldest] = known.keys();
      if (oldest !== undefined) known.delete(oldest);
    }
    known.set(key, ceiling);
    return ceiling;
  };

  return (sessionUid, turnId) => {
    if (turnId === null) return current();
    const key = `${sessionUid} ${turnId}`;
    return known.get(key) ?? find(sessionUid, turnId, key);
  };
};
