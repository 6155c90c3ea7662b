// Reads the event log of a session as one list, however often the connection breaks: each time it goes on after the last event.
// Must not know what the events are read for. Source: 20-control-plane §8.
import { setTimeout as wait } from 'node:timers/promises';
import { UnavailableError } from '#base/errors.ts';
import { type StoredEvent, storedEvent } from '#schema/events/envelope.ts';
import { streamEventsRoute, streamPosition } from '#schema/rest/prompts.ts';
import type { Api, ObjectName } from './connection/api.ts';
import { usageError } from './failure.ts';

/** What is read. `since`: the seq after which it begins; undefined: the first event that is kept. */
export type FollowOptions = Readonly<{
  since?: number | undefined;
  follow: boolean;
  hidden?: boolean;
  signal: AbortSignal;
  /** Told once when the connection broke and when events are missing. */
  note: (line: string) => void;
}>;

/** The server sends a sign of life every 15 s. Units: milliseconds. */
const SILENCE_MS = 45_000;
/** Tries in a row without an event before it gives up, and the longest wait between two. */
const MAX_TRIES = 12;
const MAX_WAIT_MS = 5_000;

/** Seq of the newest event at present. Errors: BeeuniError, CommandError. */
export const fetchHead = async (api: Api, session: ObjectName, signal: AbortSignal): Promise<number> => {
  const client = await api.client();
  const ending = new AbortController();
  const stream = await client.sse(
    streamEventsRoute,
    { params: session, query: { since: 0, follow: 'true' } },
    { signal: AbortSignal.any([signal, ending.signal]), silenceMs: SILENCE_MS },
  );
  try {
    for await (const frame of stream) {
      const position = streamPosition.safeParse(frame.data);
      if (position.success) return position.data.headSeq;
    }
    return 0;
  } finally {
    ending.abort();
  }
};

/**
 * Why reading cannot go on after a place: what followed it is no longer kept, or the log is a shorter one. Throws CommandError
 * (usage) where the place was the person's and nothing is there yet.
 */
const resetText = (data: unknown, since: number | undefined, isGiven: boolean): string => {
  const position = streamPosition.safeParse(data).data;
  if (position === undefined || since === undefined || since <= position.headSeq)
    return 'older events are no longer kept';
  if (!isGiven) return 'the log was begun anew; this is its beginning';
  throw usageError(`there is no event ${since} yet`, `the newest one is ${position.headSeq}`);
};

/** The events, each once and in order. Ends when the signal fires or, without `follow`, at the newest event. */
export async function* followEvents(
  api: Api,
  session: ObjectName,
  options: FollowOptions,
): AsyncGenerator<StoredEvent> {
  const { signal } = options;
  let since = options.since;
  let tries = 0;
  while (!signal.aborted) {
    try {
      const client = await api.client();
      const query = {
        ...(since === undefined ? {} : { since }),
        follow: options.follow ? ('true' as const) : ('false' as const),
        hidden: options.hidden === true ? ('true' as const) : ('false' as const),
      };
      const stream = await client.sse(streamEventsRoute, { params: session, query }, { signal, silenceMs: SILENCE_MS });
      for await (const frame of stream) {
        tries = 0;
        if (frame.event === 'hello') continue;
        if (frame.event === 'reset') {
          options.note(resetText(frame.data, since, options.since === since));
          continue;
        }
        const event = storedEvent.safeParse(frame.data);
        if (!event.success) continue;
        since = event.data.seq;
        yield event.data;
      }
      if (!options.follow) return;
    } catch (error) {
      if (signal.aborted) return;
      const mayPass = error instanceof UnavailableError;
      if (!mayPass || tries >= MAX_TRIES) throw error;
      if (tries === 1) options.note('the connection broke; trying again');
    }
    tries += 1;
    await wait(Math.min(250 * 2 ** tries, MAX_WAIT_MS), undefined, { signal }).catch(() => {});
  }
}
