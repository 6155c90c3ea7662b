// An event as the log gives it, and the envelope that clients know. Must not know SQL or streams. Source: 20-control-plane §8.
import type { StoredEvent } from './envelope.ts';

/** An event as it is read. `data` is JSON text, kept as it is. */
export type LogEvent = Readonly<{
  session_uid: string;
  seq: number;
  id: string;
  type: string;
  thread_id: string;
  turn_id: string | null;
  at: string;
  hidden: boolean;
  caused_by: string | null;
  data: string;
}>;

/** All of it but its data, in the words of clients. */
export const envelopeOf = (event: LogEvent): Omit<StoredEvent, 'data'> => ({
  id: event.id,
  seq: event.seq,
  sessionUid: event.session_uid,
  runId: null,
  threadId: event.thread_id,
  turnId: event.turn_id,
  type: event.type,
  at: event.at,
  hidden: event.hidden,
  causedBy: event.caused_by,
});
