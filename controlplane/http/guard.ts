// The one guard of all listeners: who calls, how often, may they, and what is recorded of a change.
// Must not know how any of it is decided.
import { createHash } from 'node:crypto';
import { LimitError } from '#base/errors.ts';
import type { GuardedCall } from '#base/http/mount.ts';
import { isMutating } from '#base/http/server.ts';
import type { Route } from '#schema/define-route.ts';
import { type Caller, callerName } from '../app/caller.ts';
import { counted } from '../app/counted.ts';
import type { TakeCall } from '../app/rate-limit.ts';
import type { RecordWrite, Write } from '../app/writes.ts';
import type { Authenticate } from './authenticate.ts';
import type { Authorize } from './authorize.ts';
import type { Guard } from './handler.ts';

/**
 * The declared state of the object that a call is about, as JSON; undefined when there is none or the call is about none.
 * Errors: UnavailableError.
 */
export type ReadState = (route: Route, params: Readonly<Record<string, string | undefined>>) => Promise<unknown>;

/** What the guard is made from. `observe` counts outcomes for metrics. */
export type GuardPorts = Readonly<{
  authenticate: Authenticate;
  authorize: Authorize;
  takeCall: TakeCall;
  recordWrite: RecordWrite;
  readState: ReadState;
  observe: Readonly<{ authenticated: (result: string) => void; denied: (reason: string) => void }>;
}>;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** JSON whose keys are in order, so that equal states have equal texts. */
const orderedJson = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

/** A name in the body counts where the path has none: of what is created. */
const nameIn = (body: unknown, key: 'name' | 'id'): string | undefined => {
  const value = typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[key] : undefined;
  return typeof value === 'string' ? value : undefined;
};

const writeOf = (call: GuardedCall, caller: Caller, body: unknown, readState: ReadState): Write => {
  const { params, route } = call;
  const name = params['name'] ?? params['id'] ?? nameIn(body, 'name') ?? nameIn(body, 'id');
  return {
    requestId: call.requestId,
    subject: callerName(caller),
    operation: route.operationId,
    namespace: params['namespace'],
    name,
    digest: sha256(JSON.stringify([route.operationId, params, call.query ?? '', body ?? null])),
    digestState: async () => {
      const named = { ...params, name: params['name'] ?? nameIn(body, 'name'), id: params['id'] ?? nameIn(body, 'id') };
      const state = await readState(route, named);
      return state === undefined ? undefined : sha256(orderedJson(state));
    },
  };
};

/** Counts the result of a step, and goes on with it; at once where the step does. */
const countedStep = <T>(work: () => Promise<T> | T, count: (result: string) => void): Promise<T> | T => {
  let value: Promise<T> | T;
  try {
    value = work();
  } catch (error) {
    return counted<T>(Promise.reject(error), count);
  }
  if (value instanceof Promise) return counted(value, count);
  count('ok');
  return value;
};

/** Oldest answer that counts when an open stream is looked at again. Units: milliseconds. */
const RECHECK_AGE_MS = 400;

/** The guard. Only people are limited and recorded; what sandboxes and the operator send is bounded elsewhere. */
export const makeGuard = (ports: GuardPorts): Guard => {
  const { authenticate, authorize, takeCall, recordWrite, readState, observe } = ports;
  const limited = (caller: Caller): Caller => {
    if (caller.kind !== 'user') return caller;
    const retryAfterMs = takeCall(callerName(caller));
    if (retryAfterMs === undefined) return caller;
    throw new LimitError('rate_limited', 'too many calls; wait and try again', { retryAfterMs });
  };
  return {
    authenticate: (call) => {
      const found =
        call.route.auth.kind === 'anyone'
          ? authenticate(call)
          : countedStep(() => authenticate(call), observe.authenticated);
      return found instanceof Promise ? found.then(limited) : limited(found);
    },
    authorize: (call, caller) =>
      countedStep(
        () => authorize(call, caller),
        (result) => {
          if (result !== 'ok') observe.denied(result);
        },
      ),
    recheck: async (call) => authorize(call, await authenticate(call, RECHECK_AGE_MS), RECHECK_AGE_MS),
    around: (call, caller, body, run) =>
      caller.kind === 'user' && isMutating(call.route.method)
        ? recordWrite(writeOf(call, caller, body, readState), call.header('idempotency-key'), run)
        : run(),
  };
};
