// Statements on what harnesses asked people. Rows follow the events of the daemon, under the session's lock; an answer is
// stored before anybody is told. Must not know who may answer. Source: A119 to A123, 20-control-plane §9.
import type { DaemonEvent } from '#schema/events/envelope.ts';
import type { HumanAnswerWire, RequestKind } from '#schema/wire/requests.ts';
import type { StoredRequest } from '../app/human-requests.ts';
import type { Statement } from './statement.ts';

/** Types of events that open or end a request. */
export const REQUEST_EVENTS = [
  'permission.asked',
  'permission.replied',
  'question.asked',
  'question.replied',
  'question.rejected',
] as const;

/** Open requests of a session beyond which no more are listed: no harness asks so much, a hostile sandbox might. */
const MAX_OPEN = 64;
/** Units: UTF-16 units of JSON. */
const MAX_DATA_LENGTH = 32_768;

/** A request that was asked, or one that ended. */
export type RequestChange =
  | Readonly<{ kind: 'asked'; sessionUid: string; generation: number; request: RequestKind; event: DaemonEvent }>
  | Readonly<{ kind: 'ended'; sessionUid: string; id: string; at: string; outcome: StoredRequest['outcome'] }>;

const OUTCOMES = { 'question.replied': 'answered', 'question.rejected': 'reject' } as const;
const REPLIES = ['once', 'always', 'reject'] as const;

/** What an event does to requests; undefined for one that does nothing or is malformed. */
export const requestChangeOf = (
  sessionUid: string,
  generation: number,
  event: DaemonEvent,
): RequestChange | undefined => {
  const id = event.data['id'];
  if (typeof id !== 'string' || id === '' || id.length > 128) return undefined;
  switch (event.type) {
    case 'permission.asked':
      return { kind: 'asked', sessionUid, generation, request: 'permission', event };
    case 'question.asked':
      return { kind: 'asked', sessionUid, generation, request: 'question', event };
    case 'permission.replied': {
      const outcome = REPLIES.find((reply) => reply === event.data['reply']) ?? 'reject';
      return { kind: 'ended', sessionUid, id, at: event.at, outcome };
    }
    case 'question.replied':
    case 'question.rejected':
      return { kind: 'ended', sessionUid, id, at: event.at, outcome: OUTCOMES[event.type] };
    default:
      return undefined;
  }
};

const timeOf = (value: unknown): string | null =>
  typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? value : null;

/** What people are shown of a request, as JSON that a list of many can hold. */
const boundedData = (data: DaemonEvent['data']): string => {
  const whole = JSON.stringify(data);
  if (whole.length <= MAX_DATA_LENGTH) return whole;
  const { id, permission, patterns, questions, deadlineAt } = data;
  const short = JSON.stringify({ id, permission, patterns, questions, deadlineAt, cut: true });
  return short.length <= MAX_DATA_LENGTH ? short : JSON.stringify({ id, deadlineAt, cut: true });
};

/** Stores requests that were asked, unless very many of the session are open; a repeated one changes nothing. */
export const insertRequests = (changes: readonly Extract<RequestChange, { kind: 'asked' }>[]): Statement => ({
  text: `insert into human_requests (session_uid, id, kind, generation, thread_id, turn_id, data, asked_at, deadline_at)
    select r.* from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::text[], $6::text[], $7::json[],
      $8::timestamptz[], $9::timestamptz[]) as r(session_uid, id, kind, generation, thread_id, turn_id, data, asked_at, deadline_at)
    where (select count(*) from human_requests o where o.session_uid = r.session_uid and o.ended_at is null) < ${MAX_OPEN}
    on conflict do nothing`,
  values: [
    changes.map((change) => change.sessionUid),
    changes.map((change) => change.event.data['id']),
    changes.map((change) => change.request),
    changes.map((change) => change.generation),
    changes.map((change) => change.event.threadId),
    changes.map((change) => change.event.turnId),
    changes.map((change) => boundedData(change.event.data)),
    changes.map((change) => change.event.at),
    changes.map((change) => timeOf(change.event.data['deadlineAt'])),
  ],
});

/** Ends requests that are open. */
export const endRequests = (changes: readonly Extract<RequestChange, { kind: 'ended' }>[]): Statement => ({
  text: `update human_requests r set ended_at = e.at, outcome = e.outcome
    from unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[]) as e(session_uid, id, at, outcome)
    where r.session_uid = e.session_uid and r.id = e.id and r.ended_at is null`,
  values: [
    changes.map((change) => change.sessionUid),
    changes.map((change) => change.id),
    changes.map((change) => change.at),
    changes.map((change) => change.outcome),
  ],
});

/** Open requests of a session, oldest first. */
export const listOpenOf = (
  sessionUid: string,
): Statement<Readonly<{ id: string; kind: RequestKind; thread_id: string; turn_id: string | null }>> => ({
  text: `select id, kind, thread_id, turn_id from human_requests
    where session_uid = $1 and ended_at is null order by asked_at, id`,
  values: [sessionUid],
});

const COLUMNS = `r.session_uid, r.id, r.kind, r.thread_id, r.turn_id, r.data, r.asked_at, r.deadline_at, r.answer,
  r.answered_by, r.answered_at, r.ended_at, r.outcome, s.namespace, s.name`;

/** One request of a session. */
export const getRequest = (sessionUid: string, kind: RequestKind, id: string): Statement<StoredRequest> => ({
  text: `select ${COLUMNS} from human_requests r join sessions s on s.uid = r.session_uid
    where r.session_uid = $1 and r.id = $2 and r.kind = $3`,
  values: [sessionUid, id, kind],
});

/** Open requests without an answer after a place, oldest first, in all sessions. */
export const listOpen = (
  after: Readonly<{ askedAt: string; sessionUid: string; id: string }> | undefined,
  limit: number,
): Statement<StoredRequest> => ({
  text: `select ${COLUMNS} from human_requests r join sessions s on s.uid = r.session_uid
    where r.ended_at is null and r.answer is null
      and ($1::timestamptz is null or (r.asked_at, r.session_uid, r.id) > ($1, $2, $3))
    order by r.asked_at, r.session_uid, r.id limit $4`,
  values: [after?.askedAt ?? null, after?.sessionUid ?? '', after?.id ?? '', limit],
});

/** Stores an answer for an open request that has none; the row comes back when it did. */
export const storeAnswer = (
  sessionUid: string,
  kind: RequestKind,
  id: string,
  answer: HumanAnswerWire,
  by: string,
): Statement<{ id: string }> => ({
  text: `update human_requests set answer = $4, answered_by = $5, answered_at = now()
    where session_uid = $1 and id = $2 and kind = $3 and ended_at is null and answer is null returning id`,
  values: [sessionUid, id, kind, JSON.stringify(answer), by],
});
