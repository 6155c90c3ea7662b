// The event stream of a session as server-sent events. Must not know how logs are read.
// Source: 20-control-plane §8.
import { LimitError } from '#base/errors.ts';
import type { SseWriter } from '#base/http/sse.ts';
import type { Session } from '#schema/resources/session.ts';
import type { streamEventsRoute } from '#schema/rest/prompts.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { SseHandler } from './handler.ts';

/** What a reader asks for; `follow` false ends at the head of this moment. */
export type EventStreamRequest = Readonly<{
  sessionUid: string;
  lastEventId: string | undefined;
  since: number | undefined;
  follow: boolean;
  hidden: boolean;
}>;

/** What the handler needs. */
export type EventPorts = Readonly<{
  fetchSession: Fetch<Session>;
  /** Streams until the reader leaves, the session is removed, or the head is reached. */
  stream: (request: EventStreamRequest, writer: SseWriter) => Promise<void>;
  /** Streams that may be open at once. */
  maxStreams: number;
  /** Told the number of open streams when it changes, and how each ended. */
  observe: Readonly<{ open: (count: number) => void; ended: (how: string) => void }>;
}>;

/** Makes the handler. Errors: NotFoundError `session_not_found`, LimitError `too_many_streams`. */
export const makeEventHandler = (
  ports: EventPorts,
): Readonly<{ streamEvents: SseHandler<typeof streamEventsRoute> }> => {
  const found = requireSession(ports.fetchSession);
  let open = 0;
  const change = (by: number): void => {
    open += by;
    ports.observe.open(open);
  };
  return {
    streamEvents: async ({ params, query, header }, writer) => {
      const session = await found(params);
      if (open >= ports.maxStreams) {
        throw new LimitError('too_many_streams', `${ports.maxStreams} streams are open; try again later`, {
          retryAfterMs: 5_000,
        });
      }
      change(1);
      try {
        await ports.stream(
          {
            sessionUid: session.metadata.uid,
            lastEventId: header('last-event-id'),
            since: query.since,
            follow: query.follow === 'true',
            hidden: query.hidden === 'true',
          },
          writer,
        );
      } finally {
        change(-1);
        ports.observe.ended(writer.ended() ?? 'finished');
      }
    },
  };
};
