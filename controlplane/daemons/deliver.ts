// Calls to port 8000 of a sandbox. The address comes from the Session's status alone, and only while the claimed pod is
// still the bound one; nothing that a client sends chooses a host. Must not know SQL or who asks.
// Source: 10-kubernetes §7 (ingress), D12.
import { isIP } from 'node:net';
import { ForbiddenError, NotFoundError, UnauthenticatedError, UnavailableError } from '#base/errors.ts';
import { type Client, createClient, type RouteResult } from '#base/http/client.ts';
import type { Route, RouteInput } from '#schema/define-route.ts';
import { answerRequestRoute, type HumanAnswerWire } from '#schema/wire/requests.ts';
import { abortTurnRoute, drainRoute, nudgeRoute, pushEnvRoute } from '#schema/wire/turns.ts';
import type { FindSessionByUid, Unseal } from '../app/ports.ts';
import { daemonCredentialContext } from './credentials.ts';

/** The claimed pod of a session and the sealed credential that its daemon expects. */
export type ClaimedDaemon = Readonly<{ pod_uid: string; daemon_credential: Buffer }>;

/** What delivery needs. */
export type DeliverPorts = Readonly<{
  findSessionByUid: FindSessionByUid;
  findDaemon: (sessionUid: string) => Promise<ClaimedDaemon | undefined>;
  unseal: Unseal;
  /** Port of daemons: 8000. */
  daemonPort: number;
  fetch?: typeof fetch | undefined;
  /** Told of calls that found no daemon or no answer. */
  onUnreachable: (sessionUid: string, call: string, error: unknown) => void;
}>;

/** The calls. None but `ask` throws: what a daemon misses it learns by asking. */
export type Deliver = Readonly<{
  nudge: (sessionUid: string, reason: 'prompt' | 'config') => Promise<void>;
  abort: (sessionUid: string, turnId: string) => Promise<void>;
  /** Undefined when the daemon could not be reached. */
  drain: (
    sessionUid: string,
    turn: 'wait' | 'abort',
    deadlineMs: number,
  ) => Promise<Readonly<{ idle: boolean }> | undefined>;
  /** Gives the daemon a person's answer. */
  answer: (
    sessionUid: string,
    id: string,
    answer: HumanAnswerWire,
  ) => Promise<'taken' | 'ended' | 'unknown' | 'unreachable'>;
  /**
   * Asks the daemon something that only it knows, and gives back its answer or its error. Errors: UnavailableError
   * `runtime_not_ready` without a claimed pod, `sandbox_unreachable` when it does not answer.
   */
  ask: <R extends Route>(
    sessionUid: string,
    route: R,
    input: RouteInput<R>,
    signal?: AbortSignal,
  ) => Promise<RouteResult<R>['body']>;
  /** Whether the daemon took the new environment. */
  pushEnv: (sessionUid: string, revision: number, env: Readonly<Record<string, string>>) => Promise<boolean>;
}>;

type DaemonRoute = typeof nudgeRoute | typeof abortTurnRoute | typeof drainRoute | typeof pushEnvRoute;

/** Time limit of a call. Units: milliseconds. */
const CALL_TIMEOUT_MS = 5_000;
/** Time limit of a question that the harness has to answer. Units: milliseconds. */
const ASK_TIMEOUT_MS = 35_000;

/** Base URL of a pod's daemon, or undefined for anything that is no address. */
export const daemonUrl = (ip: string, port: number): string | undefined => {
  const family = isIP(ip);
  if (family === 0) return undefined;
  return `http://${family === 6 ? `[${ip}]` : ip}:${port}`;
};

/** Makes the calls. */
export const makeDeliver = (ports: DeliverPorts): Deliver => {
  const clientOf = async (sessionUid: string): Promise<Client | undefined> => {
    const pod = ports.findSessionByUid(sessionUid)?.status?.pod;
    const daemon = await ports.findDaemon(sessionUid);
    const baseUrl = pod?.ip === undefined ? undefined : daemonUrl(pod.ip, ports.daemonPort);
    if (daemon === undefined || baseUrl === undefined || daemon.pod_uid !== pod?.uid) return undefined;
    const token = ports.unseal(daemon.daemon_credential, daemonCredentialContext(sessionUid));
    return createClient({
      baseUrl,
      token: () => token,
      peer: 'the sandbox',
      unreachable: 'sandbox_unreachable',
      fetch: ports.fetch,
    });
  };

  const call = async <R extends DaemonRoute>(sessionUid: string, route: R, input: RouteInput<R>) => {
    try {
      return await (await clientOf(sessionUid))?.call(route, input, { timeoutMs: CALL_TIMEOUT_MS });
    } catch (error) {
      ports.onUnreachable(sessionUid, route.operationId, error);
      return undefined;
    }
  };
  return {
    nudge: async (sessionUid, reason) => {
      await call(sessionUid, nudgeRoute, { body: { reason } });
    },
    abort: async (sessionUid, turnId) => {
      await call(sessionUid, abortTurnRoute, { body: { turnId } });
    },
    drain: async (sessionUid, turn, deadlineMs) => {
      const limited = Math.min(deadlineMs, 600_000);
      return (await call(sessionUid, drainRoute, { body: { turn, deadlineMs: limited } }))?.body;
    },
    answer: async (sessionUid, id, answer) => {
      try {
        const client = await clientOf(sessionUid);
        const input = { params: { id }, body: answer };
        const answered = await client?.call(answerRequestRoute, input, { timeoutMs: CALL_TIMEOUT_MS });
        return answered?.body.state ?? 'unreachable';
      } catch (error) {
        if (error instanceof NotFoundError && error.code === 'request_not_found') return 'unknown';
        ports.onUnreachable(sessionUid, answerRequestRoute.operationId, error);
        return 'unreachable';
      }
    },
    ask: async (sessionUid, route, input, signal) => {
      const client = await clientOf(sessionUid);
      if (client === undefined) {
        const message = 'the sandbox of this session does not run yet';
        throw new UnavailableError('runtime_not_ready', message, { retryAfterMs: 2_000 });
      }
      try {
        return (await client.call(route, input, { timeoutMs: ASK_TIMEOUT_MS, signal })).body;
      } catch (error) {
        // What the daemon thinks of our credential is nothing that the caller can mend.
        if (error instanceof UnauthenticatedError || error instanceof ForbiddenError) {
          throw new UnavailableError('sandbox_unreachable', 'the sandbox refused the control plane', { cause: error });
        }
        throw error;
      }
    },
    pushEnv: async (sessionUid, revision, env) =>
      (await call(sessionUid, pushEnvRoute, { body: { revision, env: { ...env } } }))?.status === 200,
  };
};
