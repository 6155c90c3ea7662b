// What happened in a session, read from what is stored: it works while the session sleeps. Must not know SQL or HTTP.
// Source: A125, A139, A148, 20-control-plane §3, §8.
import { InvalidError, NotFoundError } from '#base/errors.ts';
import type { StoredEvent, TurnErrorCode, TurnOutcome } from '#schema/events/envelope.ts';
import type { MessageView, RunView } from '#schema/rest/transcript.ts';
import { afterKey, cursorOf, type Page, type PageRequest, pageFrom } from './page.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A stored message, part and run, and a place that a search found; as the store gives them. */
export type StoredMessage = Readonly<{
  id: string;
  thread_id: string;
  ordinal: number;
  turn_id: string | null;
  hidden: boolean;
  data: Fields;
}>;
/** See StoredMessage. */
export type StoredPart = Readonly<{ message_id: string; id: string; ordinal: number; hidden: boolean; data: Fields }>;
/** See StoredMessage. */
export type StoredRun = Readonly<{
  id: string;
  prompt_id: string;
  attempt: number;
  taken_at: string;
  started_at: string | null;
  ended_at: string | null;
  outcome: TurnOutcome | null;
  code: string | null;
  message: string | null;
  summary: string | null;
  commit_sha: string | null;
  final: boolean;
  start_seq: number | null;
  end_seq: number | null;
}>;
/** See StoredMessage. */
export type Hit = Readonly<{
  message_id: string;
  thread_id: string;
  turn_id: string | null;
  role: string;
  snippet: string;
}>;

/** What reading needs. */
export type ReadingPorts = Readonly<{
  /** Brings messages and parts up to the log; gives back up to where. */
  catchUp: (sessionUid: string) => Promise<number>;
  /** Messages of a thread below a place, newest first. */
  messages: (
    sessionUid: string,
    threadId: string,
    below: number,
    hidden: boolean,
    limit: number,
  ) => Promise<readonly StoredMessage[]>;
  /** Parts of messages, in order. */
  parts: (sessionUid: string, messageIds: readonly string[], hidden: boolean) => Promise<readonly StoredPart[]>;
  /** Place from which on the conversation is rewound. */
  revertedFrom: (sessionUid: string) => Promise<number | undefined>;
  /** Threads besides the session's own. */
  threads: (sessionUid: string, limit: number) => Promise<readonly string[]>;
  plan: (sessionUid: string, threadId: string) => Promise<Fields | undefined>;
  search: (sessionUid: string, text: string, limit: number) => Promise<readonly Hit[]>;
  runs: (
    sessionUid: string,
    before: Readonly<{ takenAt: string; id: string }> | undefined,
    limit: number,
  ) => Promise<readonly StoredRun[]>;
  run: (sessionUid: string, id: string) => Promise<StoredRun | undefined>;
  runEvents: (
    sessionUid: string,
    id: string,
    range: Readonly<{ afterSeq: number; untilSeq: number }>,
    hidden: boolean,
    limit: number,
  ) => Promise<readonly StoredEvent[]>;
}>;

/** One entry of a plan. */
export type PlanEntry = Readonly<{ content: string; status: string; priority: string }>;

/** The functions; all by the session's uid. */
export type SessionReading = Readonly<{
  /** A page of messages, oldest first; `seq`: what the log holds up to there is in it. Errors: `invalid_cursor`. */
  messages: (
    sessionUid: string,
    threadId: string,
    page: PageRequest,
    hidden: boolean,
  ) => Promise<Page<MessageView> & Readonly<{ seq: number }>>;
  threads: (sessionUid: string) => Promise<readonly string[]>;
  /** The plan as the log has it; empty when there is none. */
  plan: (sessionUid: string, threadId: string) => Promise<readonly PlanEntry[]>;
  search: (sessionUid: string, text: string, limit: number) => Promise<readonly Hit[]>;
  runs: (sessionUid: string, page: PageRequest) => Promise<Page<RunView>>;
  /** Errors: NotFoundError `not_found`. */
  runEvents: (sessionUid: string, id: string, page: PageRequest, hidden: boolean) => Promise<Page<StoredEvent>>;
}>;

/** A page of messages is not longer than this, but for its first message. Units: bytes of JSON. */
export const MAX_MESSAGE_PAGE_BYTES = 4_194_304;
const MAX_THREADS = 200;
const FIRST_PAGE_BELOW = Number.MAX_SAFE_INTEGER;

const numberAfter = (page: PageRequest, first: number): number => {
  const key = afterKey(page);
  if (key === '') return first;
  const number = Number(key);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new InvalidError('invalid_cursor', 'the cursor was not made by this list');
};

const runPlaceOf = (key: string): Readonly<{ takenAt: string; id: string }> | undefined => {
  if (key === '') return undefined;
  const [takenAt, id] = key.split(' ');
  if (takenAt !== undefined && id !== undefined && !Number.isNaN(Date.parse(takenAt))) return { takenAt, id };
  throw new InvalidError('invalid_cursor', 'the cursor was not made by this list');
};

const runViewOf = (run: StoredRun): RunView => ({
  id: run.id,
  promptId: run.prompt_id,
  attempt: run.attempt,
  takenAt: run.taken_at,
  startedAt: run.started_at,
  endedAt: run.ended_at,
  outcome: run.outcome,
  code: run.code as TurnErrorCode | null,
  message: run.message,
  summary: run.summary,
  commit: run.commit_sha,
  final: run.final,
});

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The entries of a plan as an event has it. */
export const planEntriesOf = (data: Fields | undefined): readonly PlanEntry[] => {
  const todos = data?.['todos'];
  if (!Array.isArray(todos)) return [];
  return todos
    .filter((entry): entry is Fields => typeof entry === 'object' && entry !== null)
    .map((entry) => ({
      content: textOf(entry['content']),
      status: textOf(entry['status']),
      priority: textOf(entry['priority']),
    }));
};

/** Makes the functions. */
export const makeSessionReading = (ports: ReadingPorts): SessionReading => ({
  messages: async (uid, threadId, page, hidden) => {
    const below = numberAfter(page, FIRST_PAGE_BELOW);
    const seq = await ports.catchUp(uid);
    const found = await ports.messages(uid, threadId, below, hidden, page.limit + 1);
    const shown = found.slice(0, page.limit);
    const parts = await ports.parts(
      uid,
      shown.map(({ id }) => id),
      hidden,
    );
    const byMessage = Map.groupBy(parts, (part) => part.message_id);
    const reverted = threadId === 'root' ? await ports.revertedFrom(uid) : undefined;
    const items: MessageView[] = [];
    let bytes = 0;
    let last: StoredMessage | undefined;
    for (const message of shown) {
      const view = {
        message: message.data as MessageView['message'],
        threadId: message.thread_id,
        turnId: message.turn_id,
        reverted: reverted !== undefined && message.ordinal >= reverted,
        parts: (byMessage.get(message.id) ?? []).map((part) => part.data as MessageView['parts'][number]),
      };
      bytes += Buffer.byteLength(JSON.stringify(view));
      if (last !== undefined && bytes > MAX_MESSAGE_PAGE_BYTES) break;
      items.unshift(view);
      last = message;
    }
    const isLast = items.length === found.length;
    return { items, cursor: isLast || last === undefined ? null : cursorOf(String(last.ordinal)), seq };
  },
  threads: async (uid) => {
    await ports.catchUp(uid);
    return ports.threads(uid, MAX_THREADS);
  },
  plan: async (uid, threadId) => planEntriesOf(await ports.plan(uid, threadId)),
  search: async (uid, text, limit) => {
    await ports.catchUp(uid);
    return ports.search(uid, text, limit);
  },
  runs: async (uid, page) => {
    const runs = await ports.runs(uid, runPlaceOf(afterKey(page)), page.limit + 1);
    const { items, cursor } = pageFrom(runs, page.limit, (run) => `${run.taken_at} ${run.id}`);
    return { items: items.map(runViewOf), cursor };
  },
  runEvents: async (uid, id, page, hidden) => {
    const run = await ports.run(uid, id);
    if (run === undefined) throw new NotFoundError('not_found', `this session has no run ${id}`);
    if (run.start_seq === null) return { items: [], cursor: null };
    const afterSeq = Math.max(numberAfter(page, 0), run.start_seq - 1);
    const range = { afterSeq, untilSeq: run.end_seq ?? Number.MAX_SAFE_INTEGER };
    const events = await ports.runEvents(uid, id, range, hidden, page.limit + 1);
    return pageFrom(events, page.limit, (event) => String(event.seq));
  },
});
