// The one guard of all listeners: who calls, how often, may they, and what is recorded of a change.
// Must not know how any of it is decided.
import { createHash } from 'node:crypto';
import { BeeuniError, LimitError } from '#base/errors.ts';
import type { GuardedCall } from '#base/http/mount.ts';
import { isMutating } from '#base/http/server.ts';
import { type Caller, callerName } from '../app/caller.ts';
import type { TakeCall } from '../app/rate-limit.ts';
import type { RecordWrite, Write } from '../app/writes.ts';
import type { Authenticate } from './authenticate.ts';
import type { Authorize } from './authorize.ts';
import type { Guard } from './handler.ts';

/** What the guard is made from. `observe` counts outcomes for metrics. */
export type GuardPorts = Readonly<{
  authenticate: Authenticate;
  authorize: Authorize;
  takeCall: TakeCall;
  recordWrite: RecordWrite;
  observe: Readonly<{ authenticated: (result: string) => void; denied: (reason: string) => void }>;
}>;

const writeOf = (call: GuardedCall, caller: Caller, body: unknown): Write => ({
  requestId: call.requestId,
  subject: callerName(caller),
  operation: call.route.operationId,
  namespace: call.params['namespace'],
  name: call.params['name'] ?? call.params['id'],
  digest: createHash('sha256')
    .update(JSON.stringify([call.route.operationId, call.params, body ?? null]))
    .digest('hex'),
});

/** Counts the result of a step, and goes on with it. */
const counted = async <T>(work: Promise<T>, count: (result: string) => void): Promise<T> => {
  try {
    const value = await work;
    count('ok');
    return value;
  } catch (error) {
    count(error instanceof BeeuniError ? error.code : 'internal');
    throw error;
  }
};

/** The guard. Only people are limited and recorded; what sandboxes and the operator send is bounded elsewhere. */
export const makeGuard = (ports: GuardPorts): Guard => {
  const { authenticate, authorize, takeCall, recordWrite, observe } = ports;
  return {
    authenticate: async (call) => {
      const caller =
        call.route.auth.kind === 'anyone'
          ? await authenticate(call)
          : await counted(authenticate(call), observe.authenticated);
      if (caller.kind !== 'user') return caller;
      const retryAfterMs = takeCall(callerName(caller));
      if (retryAfterMs === undefined) return caller;
      throw new LimitError('rate_limited', 'too many calls; wait and try again', { retryAfterMs });
    },
    authorize: (call, caller) =>
      counted(authorize(call, caller), (result) => {
        if (result !== 'ok') observe.denied(result);
      }),
    around: (call, caller, body, run) =>
      caller.kind === 'user' && isMutating(call.route.method)
        ? recordWrite(writeOf(call, caller, body), call.header('idempotency-key'), run)
        : run(),
  };
};
