// One event with all its data, also when that is kept apart. Must not know streams.
import type { StoredEvent } from '#schema/events/envelope.ts';
import { envelopeOf, type LogEvent } from '#schema/events/log-event.ts';
import { readBlob, readEvents } from './events.ts';
import { firstRow, type Query } from './statement.ts';

/** An event as clients read it; data that is kept apart is given. */
export const storedEventOf = (event: LogEvent, data = event.data): StoredEvent => ({
  ...envelopeOf(event),
  data: JSON.parse(data) as Record<string, unknown>,
});

/** The event at a place, or undefined when the log does not hold it. */
export const readWholeEvent = async (
  query: Query,
  sessionUid: string,
  seq: number,
): Promise<StoredEvent | undefined> => {
  const event = await firstRow(query, readEvents(sessionUid, seq - 1, 1));
  if (event?.seq !== seq) return undefined;
  const blob = await firstRow(query, readBlob(sessionUid, seq));
  return storedEventOf(event, blob?.data);
};
