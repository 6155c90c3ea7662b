// Statements on the event log. The session's row is locked by whoever appends; readers lock nothing.
// Must not know batches, streams or what an event does.
import type { LogEvent } from '#schema/events/log-event.ts';
import type { Statement } from './statement.ts';

/** Channel on which "uid:headSeq" of grown logs are told, separated by spaces. */
export const EVENTS_CHANNEL = 'beeuni_events';
/** Longest payload of one notification; Postgres allows 7,999 bytes. */
const NOTIFICATION_BYTES = 7_500;

/** One event with its place; `n` is null for events of the control plane. */
export type EventRow = LogEvent & Readonly<{ generation: number; n: number | null }>;

/** Inserts events with the places they were given. */
export const insertEvents = (rows: readonly EventRow[]): Statement => ({
  name: 'insert_events',
  text: `insert into events (session_uid, seq, generation, n, id, type, thread_id, turn_id, at, hidden, caused_by, data)
    select * from unnest($1::text[], $2::bigint[], $3::int[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[],
      $9::timestamptz[], $10::boolean[], $11::text[], $12::json[])`,
  values: [
    rows.map((row) => row.session_uid),
    rows.map((row) => row.seq),
    rows.map((row) => row.generation),
    rows.map((row) => row.n),
    rows.map((row) => row.id),
    rows.map((row) => row.type),
    rows.map((row) => row.thread_id),
    rows.map((row) => row.turn_id),
    rows.map((row) => row.at),
    rows.map((row) => row.hidden),
    rows.map((row) => row.caused_by),
    rows.map((row) => row.data),
  ],
});

/** Data above the inline limit. */
export const insertBlobs = (
  blobs: readonly Readonly<{ session_uid: string; seq: number; data: string }>[],
): Statement => ({
  text: 'insert into event_blobs (session_uid, seq, data) select * from unnest($1::text[], $2::bigint[], $3::text[])',
  values: [blobs.map((blob) => blob.session_uid), blobs.map((blob) => blob.seq), blobs.map((blob) => blob.data)],
});

/** Where a log stands after an append. */
export type LogPosition = Readonly<{ uid: string; headSeq: number; acknowledgedN: number }>;

const payloads = (positions: readonly LogPosition[]): string[] => {
  const result: string[] = [];
  let current = '';
  for (const { uid, headSeq } of positions) {
    const item = `${uid}:${headSeq}`;
    if (current !== '' && current.length + item.length + 1 > NOTIFICATION_BYTES) {
      result.push(current);
      current = '';
    }
    current = current === '' ? item : `${current} ${item}`;
  }
  return current === '' ? result : [...result, current];
};

/** Moves counters on, and tells every replica with as few notifications as fit. */
export const advanceLogs = (positions: readonly LogPosition[]): Statement => ({
  name: 'advance_logs',
  text: `with moved as (
      update sessions s set head_seq = p.head_seq, acknowledged_n = p.acknowledged_n
      from unnest($1::text[], $2::bigint[], $3::int[]) as p(uid, head_seq, acknowledged_n) where s.uid = p.uid)
    select pg_notify($4, payload) from unnest($5::text[]) as payload`,
  values: [
    positions.map((position) => position.uid),
    positions.map((position) => position.headSeq),
    positions.map((position) => position.acknowledgedN),
    EVENTS_CHANNEL,
    payloads(positions),
  ],
});

/** Events of one session that continue exactly where its log stands. `firstN` to `lastN` are dense. */
export type Continuation = Readonly<{ sessionUid: string; generation: number; firstN: number; lastN: number }>;

/** An event before it has a place. `place` counts the sessions of the statement from 1; `n` is the daemon's own. */
export type UnplacedEvent = Omit<EventRow, 'seq' | 'generation' | 'n'> & Readonly<{ place: number; n: number }>;

/**
 * Appends in one statement what continues its log exactly. `heads` has one number for each session: the new head, or 0
 * for one of another generation, a closed one, a gap or a resend, which stays untouched.
 */
export const appendContinuations = (
  sessions: readonly Continuation[],
  events: readonly UnplacedEvent[],
): Statement<{ heads: readonly (number | string)[] }> => ({
  name: 'append_continuations',
  text: 'select append_continuations($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) as heads',
  values: [
    sessions.map((session) => session.sessionUid),
    sessions.map((session) => session.generation),
    sessions.map((session) => session.firstN),
    sessions.map((session) => session.lastN),
    events.map((event) => event.place),
    events.map((event) => event.session_uid),
    events.map((event) => event.n),
    events.map((event) => event.id),
    events.map((event) => event.type),
    events.map((event) => event.thread_id),
    events.map((event) => event.turn_id),
    events.map((event) => event.at),
    events.map((event) => event.hidden),
    events.map((event) => event.caused_by),
    events.map((event) => event.data),
  ],
});

/** Turns that already have their terminal event. */
export const findTerminals = (sessionUid: string, turnIds: readonly string[]): Statement<{ turn_id: string }> => ({
  text: `select turn_id from events where session_uid = $1 and type = 'turn.ended' and turn_id = any($2::text[])`,
  values: [sessionUid, turnIds],
});

/** The newest events about the calls of a turn, oldest first: parts that are tools, and ends of calls. */
export const listCallEvents = (
  sessionUid: string,
  turnId: string,
  fromSeq: number,
  limit: number,
): Statement<Readonly<{ type: string; thread_id: string; data: Readonly<Record<string, unknown>> }>> => ({
  text: `select type, thread_id, data from (
      select seq, type, thread_id, data from events where session_uid = $1 and seq >= $3 and turn_id = $2
        and (type = 'tool.terminal' or type = 'message.part.updated' and data::text like '%"type":"tool"%')
      order by seq desc limit $4) newest
    order by seq`,
  values: [sessionUid, turnId, fromSeq, limit],
});

/** The newest plan of a thread. */
export const readNewestPlan = (
  sessionUid: string,
  threadId: string,
): Statement<Readonly<{ data: Readonly<Record<string, unknown>> }>> => ({
  text: `select data from events where session_uid = $1 and thread_id = $2 and type = 'todo.updated'
    order by seq desc limit 1`,
  values: [sessionUid, threadId],
});

/** Events of one turn after a place, from where it began to where it ended. */
export const readTurnEvents = (
  sessionUid: string,
  turnId: string,
  range: Readonly<{ afterSeq: number; untilSeq: number }>,
  hidden: boolean,
  limit: number,
): Statement<LogEvent> => ({
  text: `select session_uid, seq, id, type, thread_id, turn_id, at, hidden, caused_by, data::text as data
    from events where session_uid = $1 and seq > $3 and seq <= $4 and turn_id = $2 and ($5 or not hidden)
    order by seq limit $6`,
  values: [sessionUid, turnId, range.afterSeq, range.untilSeq, hidden, limit],
});

/** Events after a place, in order. Bounded by count here and by bytes by the reader. */
export const readEvents = (sessionUid: string, afterSeq: number, limit: number): Statement<LogEvent> => ({
  name: 'read_events',
  text: `select session_uid, seq, id, type, thread_id, turn_id, at, hidden, caused_by, data::text as data
    from events where session_uid = $1 and seq > $2 order by seq limit $3`,
  values: [sessionUid, afterSeq, limit],
});

/** Data of an event that is kept apart. */
export const readBlob = (sessionUid: string, seq: number): Statement<{ data: string }> => ({
  text: 'select data from event_blobs where session_uid = $1 and seq = $2',
  values: [sessionUid, seq],
});

/** First and last place of a log; no row for a session that is not there. */
export const readLogRange = (sessionUid: string): Statement<{ first_seq: number; head_seq: number }> => ({
  name: 'read_log_range',
  text: 'select first_seq, head_seq from sessions where uid = $1',
  values: [sessionUid],
});

/** Removes the oldest events up to a place, at most `limit`; gives back how many. */
export const deleteEvents = (sessionUid: string, upToSeq: number, limit: number): Statement<{ count: number }> => ({
  text: `with doomed as (
      select seq from events where session_uid = $1 and seq <= $2 order by seq limit $3),
    blobs as (delete from event_blobs b using doomed where b.session_uid = $1 and b.seq = doomed.seq),
    gone as (delete from events e using doomed where e.session_uid = $1 and e.seq = doomed.seq returning 1)
    select count(*)::int as count from gone`,
  values: [sessionUid, upToSeq, limit],
});

/** Says that the log begins later now. */
export const raiseFirstSeq = (sessionUid: string, firstSeq: number): Statement => ({
  text: 'update sessions set first_seq = least($2, head_seq + 1) where uid = $1 and first_seq < $2',
  values: [sessionUid, firstSeq],
});

/** Sessions whose log holds more than a number of events. */
export const listLongLogs = (keep: number, limit: number): Statement<{ uid: string; head_seq: number }> => ({
  text: 'select uid, head_seq from sessions where head_seq - first_seq >= $1 and closed_at is null limit $2',
  values: [keep, limit],
});
