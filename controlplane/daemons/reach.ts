// Calls to port 8000 of a sandbox whose answer a person waits for: what does not arrive is an error with its cause. The address
// comes from the Session's status alone, and only while the claimed pod is still the bound one. Must not know SQL or who asks.
// Source: 10-kubernetes §7 (ingress), D12. deliver.ts is for calls that may get lost.

import { UnavailableError } from '#base/errors.ts';
import type { CallOptions, RouteResult } from '#base/http/client.ts';
import type { Route, RouteInput } from '#schema/define-route.ts';
import { sessionWait, waitSentence } from '#schema/rules/session-wait.ts';
import { type DaemonAddress, type DaemonPorts, daemonClient, findDaemonOf } from './address.ts';

/** Finds the daemon. Errors: UnavailableError `sandbox_unreachable` that says what is missing, `database_unavailable`. */
export type ReachDaemon = (sessionUid: string) => Promise<DaemonAddress>;

/** Calls a route of the daemon. Errors: those of ReachDaemon and of the route; UnavailableError `timed_out`. */
export type CallDaemon = <R extends Route>(
  sessionUid: string,
  route: R,
  input: RouteInput<R>,
  options?: CallOptions,
) => Promise<RouteResult<R>>;

/** Time limit of a call that sets none. Units: milliseconds. */
const CALL_TIMEOUT_MS = 20_000;

const unreachable = (message: string): UnavailableError =>
  new UnavailableError('sandbox_unreachable', message, { retryAfterMs: 2_000 });

/** Makes both. */
export const makeReach = (ports: DaemonPorts): Readonly<{ reach: ReachDaemon; call: CallDaemon }> => {
  const reach: ReachDaemon = async (sessionUid) => {
    const session = ports.findSessionByUid(sessionUid);
    const { namespace = '', name = 'unknown' } = session?.metadata ?? {};
    const wait =
      session === undefined
        ? undefined
        : sessionWait({ namespace, name, spec: session.spec, status: session.status ?? {} });
    // Its pod may still be there, and takes no call any more.
    if (wait !== undefined && session?.spec.operatingMode === 'Suspended') throw unreachable(waitSentence(wait));
    const found = await findDaemonOf(ports, sessionUid);
    if (found.state === 'found') return found.address;
    if (wait !== undefined) throw unreachable(waitSentence(wait));
    throw unreachable(
      found.state === 'no-pod'
        ? `session ${name} has no running sandbox now; a start or the next prompt gives it one`
        : `the sandbox of session ${name} is still starting`,
    );
  };
  return {
    reach,
    call: async (sessionUid, route, input, options) => {
      const client = daemonClient(ports, await reach(sessionUid));
      return client.call(route, input, { timeoutMs: CALL_TIMEOUT_MS, ...options });
    },
  };
};
