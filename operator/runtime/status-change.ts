// How different two statuses are, whatever the order of their keys. Pure. Source: K27.
import { sameJson } from './canonical.ts';
import type { StatusChange } from './controller.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * `major` when one of the picked parts differs, `minor` when anything else does. `pick` gives the parts that people and
 * programs wait for.
 */
export const statusChange = <S extends object>(
  stored: S | undefined,
  wanted: S,
  pick: (status: S) => unknown,
): StatusChange => {
  if (stored === undefined) return 'major';
  if (sameJson(stored, wanted)) return 'none';
  return sameJson(pick(stored), pick(wanted)) ? 'minor' : 'major';
};

/** A condition without its message: who waits on it sees status and reason. */
export const conditionKey = (
  conditions: readonly Readonly<{ type: string; status: string; reason: string }>[] | undefined,
  type: string,
): Json | undefined => {
  const found = conditions?.find((condition) => condition.type === type);
  return found === undefined ? undefined : { status: found.status, reason: found.reason };
};
