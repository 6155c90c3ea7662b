// Calls to port 8000 of a sandbox whose answer a person waits for: what does not arrive is an error with its cause. The address
// comes from the Session's status alone, and only while the claimed pod is still the bound one. Must not know SQL or who asks.
// Source: 10-kubernetes §7 (ingress), D12. deliver.ts is for calls that may get lost.

import { UnavailableError } from '#base/errors.ts';
import { type CallOptions, createClient, type RouteResult } from '#base/http/client.ts';
import type { Route, RouteInput } from '#schema/define-route.ts';
import type { FindSessionByUid, Unseal } from '../app/ports.ts';
import { daemonCredentialContext } from './credentials.ts';
import { type ClaimedDaemon, daemonUrl } from './deliver.ts';

/** What reaching needs. */
export type ReachPorts = Readonly<{
  findSessionByUid: FindSessionByUid;
  findDaemon: (sessionUid: string) => Promise<ClaimedDaemon | undefined>;
  unseal: Unseal;
  /** Port of daemons: 8000. */
  daemonPort: number;
  fetch?: typeof fetch | undefined;
}>;

/** Where a daemon answers, and what it wants to see. */
export type DaemonAddress = Readonly<{ baseUrl: string; token: string }>;

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
export const makeReach = (ports: ReachPorts): Readonly<{ reach: ReachDaemon; call: CallDaemon }> => {
  const reach: ReachDaemon = async (sessionUid) => {
    const session = ports.findSessionByUid(sessionUid);
    const name = session?.metadata.name ?? 'unknown';
    const pod = session?.status?.pod;
    if (session?.spec.operatingMode === 'Suspended') {
      throw unreachable(`session ${name} is suspended; start it first`);
    }
    const baseUrl = pod?.ip === undefined ? undefined : daemonUrl(pod.ip, ports.daemonPort);
    if (baseUrl === undefined) {
      throw unreachable(`session ${name} has no running sandbox now; a start or the next prompt gives it one`);
    }
    const daemon = await ports.findDaemon(sessionUid);
    if (daemon === undefined || daemon.pod_uid !== pod?.uid) {
      throw unreachable(`the sandbox of session ${name} is still starting`);
    }
    return { baseUrl, token: ports.unseal(daemon.daemon_credential, daemonCredentialContext(sessionUid)) };
  };
  return {
    reach,
    call: async (sessionUid, route, input, options) => {
      const { baseUrl, token } = await reach(sessionUid);
      const client = createClient({
        baseUrl,
        token: () => token,
        peer: 'the sandbox',
        unreachable: 'sandbox_unreachable',
        fetch: ports.fetch,
      });
      return client.call(route, input, { timeoutMs: CALL_TIMEOUT_MS, ...options });
    },
  };
};
