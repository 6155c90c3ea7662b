// What harnesses ask people: who sees it, and one answer to each, stored before the daemon hears of it. A daemon that
// cannot be reached hears of it in the answer to its next report. Must not know SQL or HTTP. Source: A119 to A123.
import { ConflictError, InvalidError, NotFoundError } from '#base/errors.ts';
import { sameJson } from '#base/same-json.ts';
import type { Session } from '#schema/resources/session.ts';
import type { HumanRequestView } from '#schema/rest/requests.ts';
import type { HumanAnswerWire, RequestKind } from '#schema/wire/requests.ts';
import { afterKey, cursorOf, type Page, type PageRequest, pageFrom } from './page.ts';

/** A stored request with the names of its session. Times in RFC 3339. */
export type StoredRequest = Readonly<{
  session_uid: string;
  id: string;
  kind: RequestKind;
  thread_id: string;
  turn_id: string | null;
  data: Readonly<Record<string, unknown>>;
  asked_at: string;
  deadline_at: string | null;
  answer: HumanAnswerWire | null;
  answered_by: string | null;
  answered_at: string | null;
  ended_at: string | null;
  outcome: 'once' | 'always' | 'reject' | 'answered' | null;
  namespace: string;
  name: string;
}>;

/** Where a page of all open requests begins. */
export type OpenPlace = Readonly<{ askedAt: string; sessionUid: string; id: string }>;

/** What requests need. */
export type HumanRequestsPorts = Readonly<{
  find: (sessionUid: string, kind: RequestKind, id: string) => Promise<StoredRequest | undefined>;
  /** Open requests without an answer, oldest first, in all sessions. */
  listOpen: (after: OpenPlace | undefined, limit: number) => Promise<readonly StoredRequest[]>;
  /** Stores the answer of an open request that has none; false when there was nothing to store it for. */
  storeAnswer: (
    sessionUid: string,
    kind: RequestKind,
    id: string,
    answer: HumanAnswerWire,
    by: string,
  ) => Promise<boolean>;
  /** Tells the daemon; `unreachable`: it will hear of it later. */
  deliver: (
    sessionUid: string,
    id: string,
    answer: HumanAnswerWire,
  ) => Promise<'taken' | 'ended' | 'unknown' | 'unreachable'>;
}>;

/** Whether somebody may answer requests of a kind in a session. */
export type MayAnswer = (kind: RequestKind, namespace: string, name: string) => Promise<boolean>;

/** The functions. */
export type HumanRequests = Readonly<{
  listOpen: (page: PageRequest, mayAnswer: MayAnswer) => Promise<Page<HumanRequestView>>;
  /** Errors: NotFoundError `request_not_found`. */
  get: (session: Session, kind: RequestKind, id: string) => Promise<HumanRequestView>;
  /**
   * The same answer again is the same answer. `delivered`: the daemon has it. Errors: NotFoundError `request_not_found`,
   * InvalidError, ConflictError `request_ended`.
   */
  answer: (
    session: Session,
    id: string,
    answer: HumanAnswerWire,
    by: string,
  ) => Promise<Readonly<{ view: HumanRequestView; delivered: boolean }>>;
}>;

/** Requests that one page may look at, so that a person who may answer nothing costs a bounded amount. */
const MAX_LOOKED_AT = 1_000;
const LOOK = 200;

const viewOf = (request: StoredRequest): HumanRequestView => ({
  id: request.id,
  kind: request.kind,
  namespace: request.namespace,
  session: request.name,
  sessionUid: request.session_uid,
  threadId: request.thread_id,
  turnId: request.turn_id,
  data: request.data,
  askedAt: request.asked_at,
  deadlineAt: request.deadline_at,
  state: request.ended_at !== null ? 'ended' : request.answer !== null ? 'answered' : 'open',
  outcome: request.outcome,
  answeredBy: request.answered_by,
  answeredAt: request.answered_at,
  endedAt: request.ended_at,
});

type Question = Readonly<{ options?: unknown; multiple?: unknown; custom?: unknown }>;

const labelsOf = (options: unknown): ReadonlySet<unknown> =>
  new Set(Array.isArray(options) ? options.map((option: { label?: unknown }) => option?.label) : []);

/** Says what is wrong with answers to questions; undefined: nothing. Source: A120. */
export const problemOfAnswers = (questions: unknown, answers: readonly (readonly string[])[]): string | undefined => {
  if (!Array.isArray(questions)) return undefined;
  if (answers.length !== questions.length) {
    return `there are ${questions.length} questions and ${answers.length} answers; send one list of texts per question`;
  }
  for (const [at, question] of (questions as Question[]).entries()) {
    const given = answers[at] ?? [];
    if (question.multiple !== true && given.length > 1) return `question ${at + 1} takes one answer`;
    const labels = labelsOf(question.options);
    const foreign = question.custom === false ? given.find((text) => !labels.has(text)) : undefined;
    if (foreign !== undefined) return `question ${at + 1} has no option ${JSON.stringify(foreign.slice(0, 64))}`;
  }
  return undefined;
};

const keyOfPlace = ({ askedAt, sessionUid, id }: OpenPlace): string => JSON.stringify([askedAt, sessionUid, id]);

const keyOf = ({ asked_at: askedAt, session_uid: sessionUid, id }: StoredRequest): string =>
  keyOfPlace({ askedAt, sessionUid, id });

const placeOf = (key: string): OpenPlace | undefined => {
  if (key === '') return undefined;
  try {
    const [askedAt, sessionUid, id] = JSON.parse(key) as unknown[];
    const isPlace = typeof askedAt === 'string' && typeof sessionUid === 'string' && typeof id === 'string';
    if (isPlace && !Number.isNaN(Date.parse(askedAt))) return { askedAt, sessionUid, id };
  } catch {
    // Said below.
  }
  throw new InvalidError('invalid_cursor', 'the cursor was not made by this list');
};

/** Makes the functions. */
export const makeHumanRequests = (ports: HumanRequestsPorts): HumanRequests => {
  const found = async (session: Session, kind: RequestKind, id: string): Promise<StoredRequest> => {
    const request = await ports.find(session.metadata.uid, kind, id);
    if (request !== undefined) return request;
    throw new NotFoundError('request_not_found', `session ${session.metadata.name} has no ${kind} request ${id}`);
  };

  return {
    listOpen: async (page, mayAnswer) => {
      const shown: StoredRequest[] = [];
      let after = placeOf(afterKey(page));
      let isLast = false;
      for (let looked = 0; looked < MAX_LOOKED_AT && shown.length <= page.limit && !isLast; looked += LOOK) {
        const next = await ports.listOpen(after, LOOK);
        for (const request of next) {
          if (await mayAnswer(request.kind, request.namespace, request.name)) shown.push(request);
        }
        const last = next.at(-1);
        isLast = next.length < LOOK;
        if (last !== undefined) after = { askedAt: last.asked_at, sessionUid: last.session_uid, id: last.id };
      }
      const { items, cursor } = pageFrom(shown, page.limit, keyOf);
      const lookedTo = isLast || after === undefined ? null : cursorOf(keyOfPlace(after));
      return { items: items.map(viewOf), cursor: cursor ?? lookedTo };
    },
    get: async (session, kind, id) => viewOf(await found(session, kind, id)),
    answer: async (session, id, answer, by) => {
      const { uid } = session.metadata;
      const { kind } = answer;
      const asked = await found(session, kind, id);
      if (answer.kind === 'question' && answer.answers !== null) {
        const problem = problemOfAnswers(asked.data['questions'], answer.answers);
        if (problem !== undefined) throw new InvalidError('invalid_request', problem);
      }
      const ended = new ConflictError('request_ended', `${kind} ${id} has its answer, or its turn is over`);
      if (!(await ports.storeAnswer(uid, kind, id, answer, by))) {
        const now = await found(session, kind, id);
        if (!sameJson(now.answer, answer)) throw ended;
        if (now.ended_at !== null) return { view: viewOf(now), delivered: true };
      }
      const delivery = await ports.deliver(uid, id, answer);
      if (delivery === 'ended') throw ended;
      return { view: viewOf(await found(session, kind, id)), delivered: delivery === 'taken' };
    },
  };
};
