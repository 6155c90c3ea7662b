// One transaction that appends to many logs: generations and counters are checked under the sessions' locks, places are
// dense, and what an event does to turns, prompts and facts commits with it. Must not know how batches are formed.
import { createHash } from 'node:crypto';
import { ConflictError, InvalidError } from '#base/errors.ts';
import { type DaemonEvent, EVENT_DATA, MAX_EVENT_BYTES } from '#schema/events/envelope.ts';
import type { DecideTurnEnd } from '../app/ports.ts';
import { type Ending, endedTurnOf, storeEndings } from './end-turns.ts';
import {
  advanceLogs,
  appendContinuations,
  type EventRow,
  findTerminals,
  insertBlobs,
  insertEvents,
  type LogPosition,
} from './events.ts';
import { raiseFacts } from './facts.ts';
import { endRequests, insertRequests, type RequestChange, requestChangeOf } from './human-requests.ts';
import { plainContinuations } from './plain-append.ts';
import { endSteered, type SteeredPrompt } from './prompts.ts';
import { type LockedSession, lockSessions } from './sessions.ts';
import type { Database, Query } from './statement.ts';
import { getTurns, startTurns, type TurnRow } from './turns.ts';

/** Events of one generation of one session, in the order of their `n`. */
export type Append = Readonly<{ sessionUid: string; generation: number; events: readonly DaemonEvent[] }>;

/** What one append came to. */
export type AppendResult = Readonly<{ acknowledgedN: number; headSeq: number }> | Readonly<{ refused: Error }>;

/** Appends a batch and gives back one result for each append, in order. Rejects when nothing of the batch was stored. */
export type StoreBatch = (batch: readonly Append[]) => Promise<AppendResult[]>;

type Log = { readonly session: LockedSession; acknowledgedN: number; headSeq: number };

/** Refuses an append that the log cannot take, else gives back the events that are new. */
const newEvents = (log: Log | undefined, append: Append): DaemonEvent[] | Error => {
  if (log === undefined || log.session.closed_at !== null)
    return new ConflictError('superseded', 'the session is closed');
  if (log.session.generation !== append.generation) {
    return new ConflictError('superseded', `generation ${append.generation} is not the newest claim of the session`);
  }
  const fresh = append.events.filter((event) => event.n > log.acknowledgedN);
  const first = fresh[0];
  if (first !== undefined && first.n !== log.acknowledgedN + 1) {
    return new InvalidError('invalid_request', `event ${first.n} leaves a gap after ${log.acknowledgedN}`);
  }
  return fresh;
};

/** What the terminal events of a batch need to know. */
type Turns = Readonly<{ known: ReadonlyMap<string, TurnRow>; ended: Set<string> }>;

const loadTurns = async (query: Query, batch: readonly Append[]): Promise<Turns> => {
  const named = batch.flatMap(({ sessionUid, events }) =>
    events
      .filter((event) => event.turnId !== null && (event.type === 'turn.ended' || event.type === 'turn.started'))
      .map((event) => ({ sessionUid, turnId: event.turnId ?? '' })),
  );
  const known = new Map<string, TurnRow>();
  const ended = new Set<string>();
  if (named.length === 0) return { known, ended };
  for (const turn of await query(getTurns(named.map(({ turnId }) => turnId)))) {
    known.set(`${turn.session_uid} ${turn.id}`, turn);
    if (turn.ended_at !== null) ended.add(`${turn.session_uid} ${turn.id}`);
  }
  const foreign = Map.groupBy(
    named.filter(({ sessionUid, turnId }) => !known.has(`${sessionUid} ${turnId}`)),
    ({ sessionUid }) => sessionUid,
  );
  for (const [uid, turns] of foreign) {
    const rows = await query(
      findTerminals(
        uid,
        turns.map(({ turnId }) => turnId),
      ),
    );
    for (const row of rows) ended.add(`${uid} ${row.turn_id}`);
  }
  return { known, ended };
};

type Effects = {
  readonly rows: EventRow[];
  readonly blobs: { session_uid: string; seq: number; data: string }[];
  readonly starts: { id: string; at: string; threadId: string; seq: number }[];
  readonly requests: RequestChange[];
  readonly steered: SteeredPrompt[];
  readonly endings: Ending[];
  readonly changed: Set<string>;
};

const endingOf = (turn: TurnRow, event: DaemonEvent, seq: number, decide: DecideTurnEnd): Ending => {
  const parsed = EVENT_DATA['turn.ended'].safeParse(event.data);
  const { outcome, code, message, summary, commit } = parsed.success
    ? parsed.data
    : ({ outcome: 'Failed', code: 'unknown', message: null, summary: null, commit: null } as const);
  const verdict = decide({ outcome, code, message, ...endedTurnOf(turn, event.at) });
  return { turn, verdict, at: event.at, summary, commit, seq };
};

const rowOf = (append: Append, event: DaemonEvent, seq: number, data: string): EventRow => ({
  session_uid: append.sessionUid,
  seq,
  generation: append.generation,
  n: event.n,
  id: event.id,
  type: event.type,
  thread_id: event.threadId,
  turn_id: event.turnId,
  at: event.at,
  hidden: event.hidden,
  caused_by: event.causedBy,
  data,
});

const place = (log: Log, append: Append, event: DaemonEvent, turns: Turns, effects: Effects, decide: DecideTurnEnd) => {
  log.acknowledgedN = event.n;
  const key = `${append.sessionUid} ${event.turnId}`;
  const turn = turns.known.get(key);
  if (event.type === 'turn.ended' && event.turnId !== null) {
    if (turns.ended.has(key)) return;
    turns.ended.add(key);
    if (turn !== undefined) effects.endings.push(endingOf(turn, event, log.headSeq + 1, decide));
    effects.changed.add(append.sessionUid);
  }
  if (event.type === 'turn.started' && turn !== undefined) {
    effects.starts.push({ id: turn.id, at: event.at, threadId: event.threadId, seq: log.headSeq + 1 });
    effects.changed.add(append.sessionUid);
  }
  const change = requestChangeOf(append.sessionUid, append.generation, event);
  if (change !== undefined) effects.requests.push(change);
  const promptId = event.type === 'prompt.steered' ? event.data['promptId'] : undefined;
  if (typeof promptId === 'string' && event.turnId !== null) {
    effects.steered.push({ sessionUid: append.sessionUid, promptId, turnId: event.turnId });
    effects.changed.add(append.sessionUid);
  }
  log.headSeq += 1;
  const data = JSON.stringify(event.data);
  const bytes = Buffer.byteLength(data);
  if (bytes <= MAX_EVENT_BYTES) {
    effects.rows.push(rowOf(append, event, log.headSeq, data));
    return;
  }
  const sha256 = createHash('sha256').update(data).digest('hex');
  effects.blobs.push({ session_uid: append.sessionUid, seq: log.headSeq, data });
  effects.rows.push(rowOf(append, event, log.headSeq, JSON.stringify({ blob: { bytes, sha256 } })));
};

/** Appends with effects, resends and everything that has to be refused: one transaction under the sessions' locks. `fresh` gets the new events. */
const storeChecked = (
  database: Database,
  decide: DecideTurnEnd,
  batch: readonly Append[],
  fresh: DaemonEvent[],
): Promise<AppendResult[]> =>
  database.withTransaction(async (query) => {
    // The transaction may run again.
    fresh.length = 0;
    const uids = [...new Set(batch.map((append) => append.sessionUid))];
    const logs = new Map<string, Log>();
    for (const session of await query(lockSessions(uids))) {
      logs.set(session.uid, { session, acknowledgedN: session.acknowledged_n, headSeq: session.head_seq });
    }
    const turns = await loadTurns(query, batch);
    const effects: Effects = {
      rows: [],
      blobs: [],
      starts: [],
      endings: [],
      requests: [],
      steered: [],
      changed: new Set(),
    };
    const results = batch.map((append): AppendResult => {
      const log = logs.get(append.sessionUid);
      const events = newEvents(log, append);
      if (!Array.isArray(events)) return { refused: events };
      if (log === undefined) throw new Error('an append was taken for a log that is not there');
      fresh.push(...events);
      for (const event of events) place(log, append, event, turns, effects, decide);
      return { acknowledgedN: log.acknowledgedN, headSeq: log.headSeq };
    });
    await storeEffects(query, [...logs.values()], effects);
    return results;
  });

/** Told of the events that were stored and were not there before. Must not throw. */
export type OnStored = (events: readonly DaemonEvent[]) => void;

/** Gives back the function that stores a batch: what only continues its log in one statement, the rest checked. */
export const makeStoreBatch =
  (database: Database, decide: DecideTurnEnd, onStored: OnStored = () => {}): StoreBatch =>
  async (batch) => {
    const plain = plainContinuations(batch);
    const heads = new Map<string, Readonly<{ acknowledgedN: number; headSeq: number }>>();
    if (plain.sessions.length > 0) {
      const [row] = await database.query(appendContinuations(plain.sessions, plain.events));
      plain.sessions.forEach(({ sessionUid, lastN }, index) => {
        const headSeq = Number(row?.heads[index] ?? 0);
        if (headSeq > 0) heads.set(sessionUid, { acknowledgedN: lastN, headSeq });
      });
    }
    const rest = batch.filter((append) => !heads.has(append.sessionUid));
    const fresh: DaemonEvent[] = [];
    const checked = rest.length === 0 ? [] : await storeChecked(database, decide, rest, fresh);
    for (const append of batch) if (heads.has(append.sessionUid)) fresh.push(...append.events);
    onStored(fresh);
    let at = 0;
    return batch.map((append) => heads.get(append.sessionUid) ?? checked[at++] ?? { refused: new Error('no result') });
  };

/** Requests that one batch both opens and ends are stored first. */
const storeRequestChanges = async (query: Query, changes: readonly RequestChange[]): Promise<void> => {
  const asked = changes.filter((change) => change.kind === 'asked');
  const ended = changes.filter((change) => change.kind === 'ended');
  if (asked.length > 0) await query(insertRequests(asked));
  if (ended.length > 0) await query(endRequests(ended));
};

const storeEffects = async (query: Query, logs: readonly Log[], effects: Effects): Promise<void> => {
  if (effects.rows.length > 0) await query(insertEvents(effects.rows));
  if (effects.blobs.length > 0) await query(insertBlobs(effects.blobs));
  if (effects.starts.length > 0) await query(startTurns(effects.starts));
  if (effects.steered.length > 0) await query(endSteered(effects.steered));
  await storeEndings(query, effects.endings);
  await storeRequestChanges(query, effects.requests);
  const moved = logs
    .filter((log) => log.acknowledgedN !== log.session.acknowledged_n)
    .map((log): LogPosition => ({ uid: log.session.uid, headSeq: log.headSeq, acknowledgedN: log.acknowledgedN }));
  if (moved.length > 0) await query(advanceLogs(moved));
  await raiseFacts(
    query,
    [...effects.changed].sort().map((uid) => ({ kind: 'session', uid })),
  );
};
