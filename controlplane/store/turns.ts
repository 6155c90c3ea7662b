// Statements on turns. The session's row is locked by the caller wherever a state changes.
// Must not know when a turn ends, or what follows.
import type { TurnOutcome } from '#schema/events/envelope.ts';
import type { RunSettings } from '#schema/settings/run-settings.ts';
import type { StoredRun } from '../app/session-reading.ts';
import type { Statement } from './statement.ts';

/** One turn as far as decisions need it. */
export type TurnRow = Readonly<{
  id: string;
  session_uid: string;
  prompt_id: string;
  generation: number;
  attempt: number;
  abort_asked: boolean;
  thread_id: string | null;
  ended_at: string | null;
  start_seq: number | null;
  /** RFC 3339; null for a turn that was taken and never began. */
  started_at: string | null;
  /** The harness that the session claimed last. */
  harness: string | null;
}>;

const COLUMNS = `id, session_uid, prompt_id, generation, attempt, abort_asked, thread_id, ended_at, start_seq, started_at,
  (select harness from sessions where uid = session_uid) as harness`;

/** Records that a prompt was taken. */
export const insertTurn = (
  turn: Readonly<{
    id: string;
    sessionUid: string;
    promptId: string;
    generation: number;
    attempt: number;
    settings: RunSettings | null;
  }>,
): Statement => ({
  text: `insert into turns (id, session_uid, prompt_id, generation, attempt, settings)
    values ($1, $2, $3, $4, $5, $6)`,
  values: [
    turn.id,
    turn.sessionUid,
    turn.promptId,
    turn.generation,
    turn.attempt,
    turn.settings === null ? null : JSON.stringify(turn.settings),
  ],
});

/** The settings that a turn was given. */
export const getTurnSettings = (id: string): Statement<{ settings: RunSettings | null }> => ({
  text: 'select settings from turns where id = $1',
  values: [id],
});

/** The settings of a turn, if it is one of the session. */
export const getSessionTurnSettings = (
  sessionUid: string,
  id: string,
): Statement<{ settings: RunSettings | null }> => ({
  name: 'session_turn_settings',
  text: 'select settings from turns where id = $2 and session_uid = $1',
  values: [sessionUid, id],
});

/** Turns by id. */
export const getTurns = (ids: readonly string[]): Statement<TurnRow> => ({
  text: `select ${COLUMNS} from turns where id = any($1::text[])`,
  values: [ids],
});

/** The turn that has not ended. */
export const getOpenTurn = (sessionUid: string): Statement<TurnRow> => ({
  text: `select ${COLUMNS} from turns where session_uid = $1 and ended_at is null`,
  values: [sessionUid],
});

const RUN_COLUMNS = `id, prompt_id, attempt, taken_at, started_at, ended_at, outcome, code, message, summary, commit_sha,
  final, start_seq, end_seq`;

/** Turns that were taken before a place, newest first. */
export const listRuns = (
  sessionUid: string,
  before: Readonly<{ takenAt: string; id: string }> | undefined,
  limit: number,
): Statement<StoredRun> => ({
  text: `select ${RUN_COLUMNS} from turns
    where session_uid = $1 and ($2::timestamptz is null or (taken_at, id) < ($2, $3))
    order by taken_at desc, id desc limit $4`,
  values: [sessionUid, before?.takenAt ?? null, before?.id ?? '', limit],
});

/** One turn of a session. */
export const getRun = (sessionUid: string, id: string): Statement<StoredRun> => ({
  text: `select ${RUN_COLUMNS} from turns where session_uid = $1 and id = $2`,
  values: [sessionUid, id],
});

/** Somebody asks to end the open turn; gives back its id. */
export const askAbort = (sessionUid: string): Statement<{ id: string }> => ({
  text: 'update turns set abort_asked = true where session_uid = $1 and ended_at is null returning id',
  values: [sessionUid],
});

/** Records when turns started and in which thread. */
export const startTurns = (
  starts: readonly Readonly<{ id: string; at: string; threadId: string; seq: number }>[],
): Statement => ({
  text: `update turns t set started_at = coalesce(t.started_at, s.at), thread_id = s.thread_id,
      start_seq = coalesce(t.start_seq, s.seq)
    from unnest($1::text[], $2::timestamptz[], $3::text[], $4::bigint[]) as s(id, at, thread_id, seq) where t.id = s.id`,
  values: [
    starts.map((start) => start.id),
    starts.map((start) => start.at),
    starts.map((start) => start.threadId),
    starts.map((start) => start.seq),
  ],
});

/** How a turn ended. `final`: its prompt does not run again. */
export type TurnEnd = Readonly<{
  id: string;
  at: string;
  outcome: TurnOutcome;
  code: string | null;
  message: string | null;
  summary: string | null;
  commit: string | null;
  final: boolean;
  seq: number;
}>;

/** Ends turns that are open, and makes each the last one of its session. */
export const endTurns = (ends: readonly TurnEnd[]): Statement => ({
  text: `with ended as (
      update turns t set ended_at = e.at, outcome = e.outcome, code = e.code, message = e.message, summary = e.summary,
        commit_sha = e.commit_sha, final = e.final, started_at = coalesce(t.started_at, t.taken_at), end_seq = e.seq
      from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[],
        $9::bigint[]) as e(id, at, outcome, code, message, summary, commit_sha, final, seq)
      where t.id = e.id and t.ended_at is null returning t.id, t.session_uid)
    update sessions s set last_turn_id = ended.id, idle_since = now() from ended where s.uid = ended.session_uid`,
  values: [
    ends.map((end) => end.id),
    ends.map((end) => end.at),
    ends.map((end) => end.outcome),
    ends.map((end) => end.code),
    ends.map((end) => end.message),
    ends.map((end) => end.summary),
    ends.map((end) => end.commit),
    ends.map((end) => end.final),
    ends.map((end) => end.seq),
  ],
});
