// Handlers of the sandbox listener but gateway and git: claim, health, turns, events, good-bye.
// Must not know SQL or how a caller is recognised. Source: schema/wire.

import type { DaemonEvent } from '#schema/events/envelope.ts';
import type { claimRoute } from '#schema/wire/claim.ts';
import type { healthReportRoute } from '#schema/wire/health.ts';
import type { appendEventsRoute, byeRoute, nextTurnRoute } from '#schema/wire/turns.ts';
import { callerOf } from '../app/caller.ts';
import type { Claim } from '../app/claims.ts';
import type { Health } from '../app/health.ts';
import type { TakeNextTurn } from '../app/turns.ts';
import type { Handler } from './handler.ts';

/** What the handlers need. */
export type SandboxPorts = Readonly<{
  claim: Claim;
  reportHealth: Health['report'];
  takeNextTurn: TakeNextTurn;
  appendEvents: (
    append: Readonly<{ sessionUid: string; generation: number; events: readonly DaemonEvent[] }>,
  ) => Promise<Readonly<{ acknowledgedN: number; headSeq: number }>>;
  /** A daemon said that it ends. */
  onBye: (sessionUid: string, reason: string) => void;
}>;

/** The handlers, by operationId. */
export type SandboxSessionHandlers = Readonly<{
  claim: Handler<typeof claimRoute>;
  reportHealth: Handler<typeof healthReportRoute>;
  takeNextTurn: Handler<typeof nextTurnRoute>;
  appendEvents: Handler<typeof appendEventsRoute>;
  bye: Handler<typeof byeRoute>;
}>;

/** Makes the handlers. */
export const makeSandboxHandlers = (ports: SandboxPorts): SandboxSessionHandlers => ({
  claim: async ({ caller, body, signal }) => {
    const answer = await ports.claim(callerOf(caller, 'pod'), body, signal);
    return answer.state === 'claimed' ? { status: 200, body: answer } : { status: 202, body: answer };
  },
  reportHealth: async ({ caller, body }) => ({
    status: 200,
    body: await ports.reportHealth(callerOf(caller, 'sandbox'), body),
  }),
  takeNextTurn: async ({ caller }) => ({
    status: 200,
    body: { turn: await ports.takeNextTurn(callerOf(caller, 'sandbox')) },
  }),
  appendEvents: async ({ caller, body }) => {
    const { sessionUid, generation } = callerOf(caller, 'sandbox');
    return { status: 200, body: await ports.appendEvents({ sessionUid, generation, events: body.events }) };
  },
  bye: async ({ caller, body }) => {
    ports.onBye(callerOf(caller, 'sandbox').sessionUid, body.reason);
    return { status: 204, body: null };
  },
});
