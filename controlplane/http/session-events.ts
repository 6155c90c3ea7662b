// Handler of the event stream of a session. Must not know how events are stored or shared.
// Source: 20-control-plane §8.
import type { Session } from '#schema/resources/session.ts';
import type { streamEventsRoute } from '#schema/rest/prompts.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { SseHandler } from './handler.ts';

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
