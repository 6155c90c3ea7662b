// Says on an object that this version cannot read why: nothing else of it is touched. Must not know kinds.
import { InvalidError } from '#base/errors.ts';
import { applyStatus, FIELD_MANAGERS } from '#kube/apply.ts';
import type { KubeClient } from '#kube/client.ts';
import type { Condition } from '#kube/conditions.ts';
import { type ObjectRef, pathOf, type ResourceType } from '#kube/resource-types.ts';
import { sameJson } from './canonical.ts';
import { withFailed } from './failed-condition.ts';

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isCondition = (value: unknown): value is Condition => isRecord(value) && typeof value['type'] === 'string';

/**
 * Writes `Ready` False on the object, once: its status as it is stored, with that one condition. Gives back the error of
 * the pass. Errors: ConflictError when the object changed meanwhile.
 */
export const sayUnreadable = async (
  client: KubeClient,
  type: ResourceType,
  { namespace, name }: ObjectRef,
  problem: string | undefined,
  signal: AbortSignal,
): Promise<InvalidError> => {
  const ref = { namespace, name };
  const path = pathOf(type, ref);
  const error = new InvalidError('resource_rejected', `${path} cannot be read: ${problem ?? 'no reason is known'}`);
  const object = await client.get(type, ref, { signal });
  if (object === undefined) return error;
  const stored = isRecord(object['status']) ? object['status'] : {};
  const before = Array.isArray(stored['conditions']) ? stored['conditions'].filter(isCondition) : [];
  const conditions = withFailed(before, error, object.metadata.generation ?? 1, client.serverNowMs());
  if (sameJson(before, conditions)) return error;
  const { resourceVersion } = object.metadata;
  const body = { metadata: { ...ref, resourceVersion }, status: { ...stored, conditions } };
  await applyStatus(client, type, body, { manager: FIELD_MANAGERS.operatorStatus, force: true, signal });
  return error;
};
