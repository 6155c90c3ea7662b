// Handlers of the internal listener about sessions: the stream of facts, and the ends of attempts and sessions.
// Must not know SQL or the operator's rules. Source: 10-kubernetes §6.
import type { closeSessionRoute, factsRoute, podGoneRoute, stopSessionRoute } from '#schema/wire/sync.ts';
import type { StreamFacts } from '../app/facts.ts';
import type { Lifecycle } from '../app/session-lifecycle.ts';
import type { Handler, NdjsonHandler } from './handler.ts';

/** What the handlers need. */
export type InternalSessionPorts = Readonly<{
  streamFacts: StreamFacts;
  lifecycle: Pick<Lifecycle, 'stop' | 'close' | 'podGone'>;
}>;

/** The handlers, by operationId. */
export type InternalSessionHandlers = Readonly<{
  streamFacts: NdjsonHandler<typeof factsRoute>;
  stopSession: Handler<typeof stopSessionRoute>;
  closeSession: Handler<typeof closeSessionRoute>;
  podGone: Handler<typeof podGoneRoute>;
}>;

/** Makes the handlers. */
export const makeInternalSessionHandlers = ({
  streamFacts,
  lifecycle,
}: InternalSessionPorts): InternalSessionHandlers => ({
  streamFacts: ({ query }, writer) => streamFacts(query.after, writer),
  stopSession: async ({ params, body }) => {
    const state = await lifecycle.stop({ uid: params.uid, ...body });
    return state === 'stopped' ? { status: 200, body: { state } } : { status: 202, body: { state } };
  },
  closeSession: async ({ params }) => {
    await lifecycle.close(params.uid);
    return { status: 204, body: null };
  },
  podGone: async ({ params, body }) => {
    await lifecycle.podGone(params.uid, body.podUid);
    return { status: 204, body: null };
  },
});
