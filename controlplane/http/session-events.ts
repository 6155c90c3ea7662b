// Handlers of the event log of a session. Must not know how events are stored or shared.
// Source: 20-control-plane §8.
import { NotFoundError } from '#base/errors.ts';
import type { StoredEvent } from '#schema/events/envelope.ts';
import type { Session } from '#schema/resources/session.ts';
import type { getEventRoute, streamEventsRoute } from '#schema/rest/prompts.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { Handler, SseHandler } from './handler.ts';

/** Where frames go. */
export type EventSink = Readonly<{
  write: (text: string) => boolean;
  drained: () => Promise<boolean>;
  drop: () => void;
  signal: AbortSignal;
}>;

/** What the handler needs. */
export type SessionEventsPorts = Readonly<{
  fetchSession: Fetch<Session>;
  /** Makes sure that the session has a log. */
  admitSession: (session: Session) => Promise<void>;
  stream: (
    request: Readonly<{
      sessionUid: string;
      lastEventId: string | undefined;
      since: number | undefined;
      follow: boolean;
      hidden: boolean;
    }>,
    sink: EventSink,
  ) => Promise<void>;
}>;

/** Makes the handler. */
export const makeStreamEvents = (ports: SessionEventsPorts): SseHandler<typeof streamEventsRoute> => {
  const found = requireSession(ports.fetchSession);
  return async ({ params, query, header }, writer) => {
    const session = await found(params);
    await ports.admitSession(session);
    const request = {
      sessionUid: session.metadata.uid,
      lastEventId: header('last-event-id'),
      since: query.since,
      follow: query.follow === 'true',
      hidden: query.hidden === 'true',
    };
    await ports.stream(request, writer);
  };
};

/** What reading one event needs. */
export type GetEventPorts = Readonly<{
  fetchSession: Fetch<Session>;
  /** The event with all its data; undefined when the log does not hold it. */
  readEvent: (sessionUid: string, seq: number) => Promise<StoredEvent | undefined>;
}>;

/** Makes the handler. */
export const makeGetEvent = (ports: GetEventPorts): Handler<typeof getEventRoute> => {
  const found = requireSession(ports.fetchSession);
  return async ({ params }) => {
    const session = await found(params);
    const event = await ports.readEvent(session.metadata.uid, params.seq);
    if (event !== undefined) return { status: 200, body: event };
    throw new NotFoundError('not_found', `the log of session ${params.name} holds no event ${params.seq}`);
  };
};
