// Calls to port 8000 of a sandbox. The address comes from the Session's status alone, and only while the claimed pod is
// still the bound one; nothing that a client sends chooses a host. Must not know SQL or who asks.
// Source: 10-kubernetes §7 (ingress), D12.
import { ConflictError, NotFoundError, UnsupportedError } from '#base/errors.ts';
import type { Client } from '#base/http/client.ts';
import type { RouteInput } from '#schema/define-route.ts';
import { answerRequestRoute, type HumanAnswerWire } from '#schema/wire/requests.ts';
import { type SteeredPrompt, steerTurnRoute } from '#schema/wire/runtime.ts';
import { abortTurnRoute, drainRoute, nudgeRoute, pushEnvRoute } from '#schema/wire/turns.ts';
import { type DaemonPorts, daemonClient, findDaemonOf } from './address.ts';

/** What delivery needs. */
export type DeliverPorts = DaemonPorts &
  Readonly<{
    /** Told of calls that found no daemon or no answer. */
    onUnreachable: (sessionUid: string, call: string, error: unknown) => void;
  }>;

/** The calls. None of them throws: what a daemon misses it learns by asking. */
export type Deliver = Readonly<{
  nudge: (sessionUid: string, reason: 'prompt' | 'config') => Promise<void>;
  abort: (sessionUid: string, turnId: string) => Promise<void>;
  /** Undefined when the daemon could not be reached. */
  drain: (
    sessionUid: string,
    turn: 'wait' | 'abort',
    deadlineMs: number,
  ) => Promise<Readonly<{ idle: boolean }> | undefined>;
  /** Gives the daemon a prompt for its running turn. `unknown`: it may or may not have it. */
  steer: (sessionUid: string, prompt: SteeredPrompt) => Promise<'joined' | 'unknown' | 'unsupported' | 'turn_ended'>;
  /** Gives the daemon a person's answer. */
  answer: (
    sessionUid: string,
    id: string,
    answer: HumanAnswerWire,
  ) => Promise<'taken' | 'ended' | 'unknown' | 'unreachable'>;
  /** Whether the daemon took the new environment. */
  pushEnv: (sessionUid: string, revision: number, env: Readonly<Record<string, string>>) => Promise<boolean>;
}>;

type DaemonRoute = typeof nudgeRoute | typeof abortTurnRoute | typeof drainRoute | typeof pushEnvRoute;

/** Time limit of a call. Units: milliseconds. */
const CALL_TIMEOUT_MS = 5_000;

/** Makes the calls. */
export const makeDeliver = (ports: DeliverPorts): Deliver => {
  const clientOf = async (sessionUid: string): Promise<Client | undefined> => {
    const found = await findDaemonOf(ports, sessionUid);
    return found.state === 'found' ? daemonClient(ports, found.address) : undefined;
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
    steer: async (sessionUid, prompt) => {
      try {
        const client = await clientOf(sessionUid);
        if (client === undefined) return 'turn_ended';
        await client.call(steerTurnRoute, { body: prompt }, { timeoutMs: CALL_TIMEOUT_MS });
        return 'joined';
      } catch (error) {
        if (error instanceof ConflictError) return 'turn_ended';
        if (error instanceof UnsupportedError) return 'unsupported';
        ports.onUnreachable(sessionUid, steerTurnRoute.operationId, error);
        return 'unknown';
      }
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
    pushEnv: async (sessionUid, revision, env) =>
      (await call(sessionUid, pushEnvRoute, { body: { revision, env: { ...env } } }))?.status === 200,
  };
};
