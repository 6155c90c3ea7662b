// The transcript of a session in tables: brought up to the log when somebody reads it, a chunk of events in a transaction.
// Must not know how events are folded. Source: A125, A139, 20-control-plane §8.
import {
  FOLDED_TYPES,
  type FoldedEvent,
  type FoldedMessage,
  type FoldedPart,
  type FoldResult,
  type FoldState,
  partKey,
  referencesOf,
  visibleTextOf,
} from '#schema/rules/fold-transcript.ts';
import { readBlob } from './events.ts';
import { type Database, firstRow, type Query, type Statement } from './statement.ts';

/** A message as it is read. */
export type MessageRow = Readonly<{
  id: string;
  thread_id: string;
  ordinal: number;
  turn_id: string | null;
  hidden: boolean;
  data: Readonly<Record<string, unknown>>;
}>;

/** A part as it is read. */
export type PartRow = Readonly<{
  message_id: string;
  id: string;
  ordinal: number;
  hidden: boolean;
  call_id: string | null;
  data: Readonly<Record<string, unknown>>;
}>;

/** A place of the transcript that a search found. */
export type HitRow = Readonly<{
  message_id: string;
  thread_id: string;
  turn_id: string | null;
  role: string;
  snippet: string;
  ordinal: number;
}>;

type EventRow = FoldedEvent & Readonly<{ data: Readonly<Record<string, unknown>> }>;

/** JSON without what Postgres' functions on JSON cannot read. */
const jsonOf = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'string' ? inner.toWellFormed().replaceAll('\u0000', '\ufffd') : inner,
  );

/** Events of one transaction. */
const CHUNK = 1_000;
/** Longest text of one part that search looks at. Units: characters. */
const MAX_SEARCHED_TEXT = 100_000;
/** Newest parts of a session that a search looks at. */
const MAX_SEARCHED_PARTS = 20_000;

const lockTranscript = (
  sessionUid: string,
): Statement<Readonly<{ folded_seq: number; reverted_from: string | null }>> => ({
  text: 'select folded_seq, reverted_from from transcripts where session_uid = $1 for update',
  values: [sessionUid],
});

const readChunk = (sessionUid: string, afterSeq: number): Statement<EventRow> => ({
  text: `select seq, type, thread_id, turn_id, hidden, data from events
    where session_uid = $1 and seq > $2 and type = any($3::text[]) order by seq limit $4`,
  values: [sessionUid, afterSeq, FOLDED_TYPES, CHUNK],
});

const readMessages = (sessionUid: string, ids: readonly string[]): Statement<MessageRow> => ({
  text: `select id, thread_id, ordinal, turn_id, hidden, data from messages
    where session_uid = $1 and id = any($2::text[])`,
  values: [sessionUid, ids],
});

const readParts = (
  sessionUid: string,
  keys: readonly (readonly [string, string])[],
  callIds: readonly string[],
): Statement<PartRow> => ({
  text: `select message_id, id, ordinal, hidden, call_id, data from message_parts p
      join unnest($2::text[], $3::text[]) as k(of_message, of_part) on p.message_id = k.of_message and p.id = k.of_part
      where p.session_uid = $1
    union all select message_id, id, ordinal, hidden, call_id, data from message_parts
      where session_uid = $1 and call_id = any($4::text[])`,
  values: [sessionUid, keys.map(([message]) => message), keys.map(([, part]) => part), callIds],
});

const storeMessages = (sessionUid: string, messages: readonly FoldedMessage[]): Statement => ({
  text: `insert into messages (session_uid, id, thread_id, ordinal, turn_id, hidden, data)
    select $1, m.* from unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::boolean[], $7::json[])
      as m(id, thread_id, ordinal, turn_id, hidden, data)
    on conflict (session_uid, id) do update set hidden = excluded.hidden, data = excluded.data, turn_id = excluded.turn_id`,
  values: [
    sessionUid,
    messages.map((message) => message.id),
    messages.map((message) => message.threadId),
    messages.map((message) => message.ordinal),
    messages.map((message) => message.turnId),
    messages.map((message) => message.hidden),
    messages.map((message) => jsonOf(message.data)),
  ],
});

const storeParts = (sessionUid: string, parts: readonly FoldedPart[]): Statement => ({
  text: `insert into message_parts (session_uid, message_id, id, ordinal, hidden, call_id, data, words)
    select $1, p.message_id, p.id, p.ordinal, p.hidden, p.call_id, p.data,
      case when p.seen is null then null else to_tsvector('simple', p.seen) end
    from unnest($2::text[], $3::text[], $4::bigint[], $5::boolean[], $6::text[], $7::json[], $8::text[])
      as p(message_id, id, ordinal, hidden, call_id, data, seen)
    on conflict (session_uid, message_id, id) do update set hidden = excluded.hidden, call_id = excluded.call_id,
      data = excluded.data, words = excluded.words`,
  values: [
    sessionUid,
    parts.map((part) => part.messageId),
    parts.map((part) => part.id),
    parts.map((part) => part.ordinal),
    parts.map((part) => part.hidden),
    parts.map((part) => part.callId),
    parts.map((part) => jsonOf(part.data)),
    parts.map((part) => visibleTextOf(part)?.replaceAll('\u0000', ' ').slice(0, MAX_SEARCHED_TEXT) ?? null),
  ],
});

const removeMessages = (sessionUid: string, ids: readonly string[]): Statement => ({
  text: 'delete from messages where session_uid = $1 and id = any($2::text[])',
  values: [sessionUid, ids],
});

const removeParts = (sessionUid: string, parts: FoldResult['removedParts']): Statement => ({
  text: `delete from message_parts p using unnest($2::text[], $3::text[]) as k(message_id, id)
    where p.session_uid = $1 and p.message_id = k.message_id and p.id = k.id`,
  values: [sessionUid, parts.map((part) => part.messageId), parts.map((part) => part.id)],
});

const moveThread = (sessionUid: string, from: string, to: string): Statement => ({
  text: 'update messages set thread_id = $3 where session_uid = $1 and thread_id = $2',
  values: [sessionUid, from, to],
});

const saveFolded = (sessionUid: string, foldedSeq: number, revertedFrom: string | null): Statement => ({
  text: 'update transcripts set folded_seq = $2, reverted_from = $3 where session_uid = $1',
  values: [sessionUid, foldedSeq, revertedFrom],
});

const messageOf = (row: MessageRow): FoldedMessage => ({
  id: row.id,
  threadId: row.thread_id,
  ordinal: row.ordinal,
  turnId: row.turn_id,
  hidden: row.hidden,
  data: row.data,
});

const partOf = (row: PartRow): FoldedPart => ({
  messageId: row.message_id,
  id: row.id,
  ordinal: row.ordinal,
  hidden: row.hidden,
  callId: row.call_id,
  data: row.data,
});

/** Puts the data of large events in place of their reference. */
const whole = async (query: Query, sessionUid: string, event: EventRow): Promise<EventRow> => {
  if (typeof event.data['blob'] !== 'object') return event;
  const blob = await firstRow(query, readBlob(sessionUid, event.seq));
  return blob === undefined ? event : { ...event, data: JSON.parse(blob.data) as EventRow['data'] };
};

type Fold = (before: FoldState, events: readonly FoldedEvent[]) => FoldResult;

/** Folds events that move nothing, and stores what changed. */
const foldRun = async (
  query: Query,
  sessionUid: string,
  events: readonly EventRow[],
  revertedFrom: string | null,
  fold: Fold,
): Promise<string | null> => {
  if (events.length === 0) return revertedFrom;
  const { messageIds, partKeys, callIds } = referencesOf(events);
  const messages = await query(readMessages(sessionUid, messageIds));
  const parts = await query(readParts(sessionUid, partKeys, callIds));
  const result = fold(
    {
      messages: new Map(messages.map((row) => [row.id, messageOf(row)])),
      parts: new Map(parts.map((row) => [partKey(row.message_id, row.id), partOf(row)])),
      revertedFrom,
    },
    events,
  );
  if (result.removedMessages.length > 0) await query(removeMessages(sessionUid, result.removedMessages));
  if (result.removedParts.length > 0) await query(removeParts(sessionUid, result.removedParts));
  if (result.messages.length > 0) await query(storeMessages(sessionUid, result.messages));
  if (result.parts.length > 0) await query(storeParts(sessionUid, result.parts));
  return result.revertedFrom;
};

const ROOT_THREAD = 'root';

/**
 * Brings the transcript of a session up to its log; gives back up to where. Nothing happens for a session without rows.
 * Several at once wait for each other and fold every event once.
 */
export const makeCatchUp =
  (database: Database, fold: Fold) =>
  async (sessionUid: string): Promise<number> => {
    const range = { text: 'select head_seq from sessions where uid = $1', values: [sessionUid] };
    const head = (await firstRow(database.query, range as Statement<{ head_seq: number }>))?.head_seq;
    if (head === undefined) return 0;
    for (;;) {
      const folded = await database.withTransaction(async (query) => {
        await query({
          text: `insert into transcripts (session_uid) select uid from sessions where uid = $1 on conflict do nothing`,
          values: [sessionUid],
        });
        const at = await firstRow(query, lockTranscript(sessionUid));
        if (at === undefined || at.folded_seq >= head) return { seq: at?.folded_seq ?? head, done: true };
        const rows = await query(readChunk(sessionUid, at.folded_seq));
        const events: EventRow[] = [];
        for (const row of rows) events.push(await whole(query, sessionUid, row));
        let { reverted_from: revertedFrom } = at;
        let run: EventRow[] = [];
        for (const event of events) {
          if (event.type !== 'session.forked') {
            run.push(event);
            continue;
          }
          await foldRun(query, sessionUid, run, revertedFrom, fold);
          run = [];
          revertedFrom = null;
          const { threadId } = event.data;
          if (typeof threadId === 'string') await query(moveThread(sessionUid, ROOT_THREAD, threadId));
        }
        revertedFrom = await foldRun(query, sessionUid, run, revertedFrom, fold);
        const last = rows.at(-1)?.seq;
        const seq = rows.length < CHUNK || last === undefined ? Math.max(head, last ?? 0) : last;
        await query(saveFolded(sessionUid, seq, revertedFrom));
        return { seq, done: seq >= head };
      });
      if (folded.done) return folded.seq;
    }
  };

/** Messages of a thread below a place, newest first. */
export const listMessages = (
  sessionUid: string,
  threadId: string,
  below: number,
  hidden: boolean,
  limit: number,
): Statement<MessageRow> => ({
  text: `select id, thread_id, ordinal, turn_id, hidden, data from messages
    where session_uid = $1 and thread_id = $2 and ordinal < $3 and ($4 or not hidden) order by ordinal desc limit $5`,
  values: [sessionUid, threadId, below, hidden, limit],
});

/** All parts of messages, in order. */
export const listParts = (sessionUid: string, messageIds: readonly string[], hidden: boolean): Statement<PartRow> => ({
  text: `select message_id, id, ordinal, hidden, call_id, data from message_parts
    where session_uid = $1 and message_id = any($2::text[]) and ($3 or not hidden) order by ordinal, id`,
  values: [sessionUid, messageIds, hidden],
});

/** From which message on the conversation is rewound; no row before the first read. */
export const readReverted = (
  sessionUid: string,
): Statement<Readonly<{ reverted_from: string | null; ordinal: number | null }>> => ({
  text: `select t.reverted_from, m.ordinal from transcripts t
    left join messages m on m.session_uid = t.session_uid and m.id = t.reverted_from where t.session_uid = $1`,
  values: [sessionUid],
});

/** Threads besides the session's own, oldest first. */
export const listThreads = (sessionUid: string, limit: number): Statement<Readonly<{ thread_id: string }>> => ({
  text: `select thread_id from messages where session_uid = $1 and thread_id <> '${ROOT_THREAD}'
    group by thread_id order by min(ordinal) limit $2`,
  values: [sessionUid, limit],
});

/** Places whose visible text matches, newest first. The newest parts are looked at, whatever the session holds. */
export const searchParts = (sessionUid: string, text: string, limit: number): Statement<HitRow> => ({
  text: `with newest as (
      select message_id, ordinal, data, words from message_parts
      where session_uid = $1 and words is not null and not hidden order by ordinal desc limit $4),
    hits as (
      select newest.*, websearch_to_tsquery('simple', $2) as wanted from newest
      where words @@ websearch_to_tsquery('simple', $2) order by ordinal desc limit $3)
    select h.message_id, m.thread_id, m.turn_id, coalesce(m.data->>'role', 'assistant') as role, h.ordinal,
      ts_headline('simple', left(h.data->>'text', ${MAX_SEARCHED_TEXT}), h.wanted,
        'StartSel="", StopSel="", MaxWords=30, MinWords=10') as snippet
    from hits h join messages m on m.session_uid = $1 and m.id = h.message_id and not m.hidden order by h.ordinal desc`,
  values: [sessionUid, text, limit, MAX_SEARCHED_PARTS],
});
