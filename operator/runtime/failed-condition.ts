// What an object's status says when a pass over it cannot succeed until something changes. Pure. Must not know kinds.
// There is no condition of its own for it: `Ready` is False with the reason `Failed`. Source: docs/decisions/0011.
import type { BeeuniError } from '#base/errors.ts';
import { type Condition, withCondition } from '#kube/conditions.ts';
import { timestamp } from './time.ts';

/** The conditions with `Ready` as the error makes it; the others stay. `now` in milliseconds since 1970. */
export const withFailed = (
  before: readonly Condition[] | undefined,
  error: BeeuniError | undefined,
  generation: number,
  now: number,
): Condition[] =>
  withCondition(
    before ?? [],
    {
      type: 'Ready',
      status: 'False',
      reason: 'Failed',
      message: error === undefined ? 'internal: see the log of the operator' : `${error.code}: ${error.message}`,
    },
    generation,
    timestamp(now),
  );
