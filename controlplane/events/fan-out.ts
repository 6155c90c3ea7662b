// Streams of event logs: each reader catches up by pages at its own pace, then shares one bounded tail with all others of
// its session. A reader that leaves too much unread is dropped by its writer and resumes with its last id.
// Must not know SQL or HTTP. Source: 20-control-plane §8, FD4, FD5, FD8.
import { type Clock, sleep } from '#base/clock.ts';
import type { LogEvent } from '#schema/events/log-event.ts';
import { type Frame, frameOf, type LogRange, namedPosition, resumeAt } from './resume.ts';
import { Tail } from './tail.ts';

/** What the streams need. */
export type FanOutPorts = Readonly<{
  readEvents: (sessionUid: string, afterSeq: number, limit: number) => Promise<readonly LogEvent[]>;
  /** Undefined for a session that has no log. */
  readRange: (sessionUid: string) => Promise<LogRange | undefined>;
  clock: Clock;
  onError: (error: unknown) => void;
  /** Told how each stream began: from the start, resumed, or reset. */
  onOpen: (how: 'new' | 'resumed' | 'reset') => void;
  /** Told of the events that were written to a reader. */
  onSent?: ((events: number) => void) | undefined;
  /** How long a reader may take nothing before it is dropped; 30 s when absent. Source: FD6. Units: milliseconds. */
  stuckMs?: number | undefined;
}>;

/** Where frames go: text of server-sent events. `write` is false once the reader is gone or was dropped. */
export type EventSink = Readonly<{
  write: (text: string) => boolean;
  drained: () => Promise<boolean>;
  /** Ends the stream of a reader that does not read. */
  drop: () => void;
  signal: AbortSignal;
}>;

/** What a reader asks for. */
export type StreamRequest = Readonly<{
  sessionUid: string;
  lastEventId: string | undefined;
  since: number | undefined;
  /** False: end at the head of this moment. */
  follow: boolean;
  hidden: boolean;
}>;

/** The streams of a replica. */
export type FanOut = Readonly<{
  /** Streams until the reader leaves, the session is removed, or the head is reached without `follow`. */
  stream: (request: StreamRequest, sink: EventSink) => Promise<void>;
  /** A log grew: from the notification. */
  grew: (sessionUid: string, headSeq: number) => void;
  /** Something about the session changed, maybe its end. */
  changed: (sessionUid: string) => void;
  /** Notifications may have been missed. */
  gap: () => void;
  /** Open tails and their readers, for metrics. */
  usage: () => Readonly<{ tails: number; readers: number }>;
}>;

const PAGE_EVENTS = 200;
/** What a catching-up reader is given before it is waited for. Units: bytes. */
const CATCH_UP_BYTES = 65_536;
const RETRY_MS = 1_000;
const STUCK_MS = 30_000;

const controlFrame = (event: 'hello' | 'reset', sessionUid: string, range: LogRange): string =>
  `event: ${event}\ndata: ${JSON.stringify({ sessionUid, firstSeq: range.firstSeq, headSeq: range.headSeq })}\n\n`;

/** Lets what was written go out. */
const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Makes the streams. */
export const makeFanOut = (ports: FanOutPorts): FanOut => {
  const tails = new Map<string, Tail>();

  const frames = async (sessionUid: string, after: number): Promise<Frame[]> =>
    (await ports.readEvents(sessionUid, after, PAGE_EVENTS)).map(frameOf);

  const joinTail = (sessionUid: string, head: number): Tail => {
    const known = tails.get(sessionUid);
    const tail =
      known ??
      new Tail(head, {
        read: (after) => frames(sessionUid, after),
        readRange: () => ports.readRange(sessionUid),
        pause: (signal) => sleep(ports.clock, RETRY_MS, signal),
        onError: ports.onError,
      });
    tails.set(sessionUid, tail);
    tail.readers += 1;
    // Between reading the head and joining, a notification may have found no tail to tell.
    if (known === undefined) tail.check();
    return tail;
  };

  const leaveTail = (sessionUid: string, tail: Tail): void => {
    tail.readers -= 1;
    if (tail.readers > 0) return;
    tail.close();
    if (tails.get(sessionUid) === tail) tails.delete(sessionUid);
  };

  /** Waits until the reader has taken what was written; false once it is gone, or did not move for too long. */
  const isDrained = async (sink: EventSink): Promise<boolean> => {
    const over = new AbortController();
    const tooLong = sleep(ports.clock, ports.stuckMs ?? STUCK_MS, over.signal).then(() => false);
    const isTaken = await Promise.race([sink.drained(), tooLong]);
    over.abort();
    if (!isTaken) sink.drop();
    return isTaken;
  };

  /** Sends frames after a place and waits for the reader after every so many bytes; false once it is gone. */
  const send = async (request: StreamRequest, after: number, list: readonly Frame[], sink: EventSink) => {
    let unread = 0;
    let sent = 0;
    if (list[0] !== undefined && list[0].seq !== after + 1) {
      const range = { firstSeq: list[0].seq, headSeq: list.at(-1)?.seq ?? list[0].seq };
      if (!sink.write(controlFrame('reset', request.sessionUid, range))) return false;
    }
    for (const frame of list) {
      if (frame.hidden && !request.hidden) continue;
      unread += frame.bytes;
      if (unread > CATCH_UP_BYTES) {
        if (!(await isDrained(sink))) return false;
        await nextTick();
        unread = frame.bytes;
      }
      if (!sink.write(frame.text)) return false;
      sent += 1;
    }
    if (sent > 0) ports.onSent?.(sent);
    return true;
  };

  const follow = async (request: StreamRequest, tail: Tail, from: number, sink: EventSink): Promise<void> => {
    let position = from;
    while (!sink.signal.aborted && !tail.isGone) {
      const shared = tail.after(position);
      const list = shared ?? (await frames(request.sessionUid, position));
      const last = list.at(-1);
      if (last !== undefined) {
        if (!(await send(request, position, list, sink))) return;
        position = last.seq;
      } else if (shared === undefined) {
        // What the tail has passed is neither in it nor in the log: it was pruned.
        position = tail.readTo;
      } else {
        await tail.changed(sink.signal);
      }
    }
  };

  const readOnce = async (request: StreamRequest, from: number, head: number, sink: EventSink): Promise<void> => {
    let position = from;
    while (position < head) {
      const list = (await frames(request.sessionUid, position)).filter((frame) => frame.seq <= head);
      const last = list.at(-1);
      if (last === undefined || !(await send(request, position, list, sink))) return;
      position = last.seq;
    }
  };

  return {
    stream: async (request, sink) => {
      const { sessionUid } = request;
      const range = (await ports.readRange(sessionUid)) ?? { firstSeq: 1, headSeq: 0 };
      const position = namedPosition(request.lastEventId, request.since);
      const { after, reset } = resumeAt(position, range);
      ports.onOpen(reset ? 'reset' : position === undefined ? 'new' : 'resumed');
      if (!sink.write(controlFrame('hello', sessionUid, range))) return;
      if (reset && !sink.write(controlFrame('reset', sessionUid, range))) return;
      if (!request.follow) return readOnce(request, after, range.headSeq, sink);
      const tail = joinTail(sessionUid, range.headSeq);
      try {
        await follow(request, tail, after, sink);
      } finally {
        leaveTail(sessionUid, tail);
      }
    },
    grew: (sessionUid, headSeq) => tails.get(sessionUid)?.grewTo(headSeq),
    changed: (sessionUid) => tails.get(sessionUid)?.check(),
    gap: () => {
      for (const tail of tails.values()) tail.check();
    },
    usage: () => {
      let readers = 0;
      for (const tail of tails.values()) readers += tail.readers;
      return { tails: tails.size, readers };
    },
  };
};

/** Reads a notification of grown logs: "uid:head uid:head". */
export const parseGrown = (payload: string): readonly Readonly<{ sessionUid: string; headSeq: number }>[] =>
  payload.split(' ').flatMap((item) => {
    const at = item.lastIndexOf(':');
    const headSeq = Number(item.slice(at + 1));
    return at > 0 && Number.isSafeInteger(headSeq) ? [{ sessionUid: item.slice(0, at), headSeq }] : [];
  });
