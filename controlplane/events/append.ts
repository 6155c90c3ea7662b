// Group commit: appends that arrive while a transaction runs share the next one, at most two transactions at a time.
// Appends of one session never overtake each other. Must not know SQL or HTTP. Source: 20-control-plane §8.
import { InvalidError } from '#base/errors.ts';
import type { DaemonEvent } from '#schema/events/envelope.ts';

/** Events of one generation of one session. */
export type Append = Readonly<{ sessionUid: string; generation: number; events: readonly DaemonEvent[] }>;
/** Where the log stands after an append. */
export type Acknowledgement = Readonly<{ acknowledgedN: number; headSeq: number }>;
/** See Acknowledgement; `refused` is thrown to the one who appended. */
export type AppendResult = Acknowledgement | Readonly<{ refused: Error }>;

/** What the appender needs. */
export type AppenderPorts = Readonly<{
  /** Stores a batch in one transaction; one result for each append, in order. */
  storeBatch: (batch: readonly Append[]) => Promise<AppendResult[]>;
  /** Whether a failed batch holds a value that the database cannot store, so that each append is tried alone. */
  isDataError: (error: unknown) => boolean;
}>;

/** Appends events. */
export type AppendEvents = (append: Append) => Promise<Acknowledgement>;

/** Transactions at a time. More do not help: they wait for the same disk. */
const LANES = 2;
/** Size of one transaction. */
const MAX_BATCH_EVENTS = 4_096;

type Waiting = {
  readonly append: Append;
  readonly resolve: (acknowledgement: Acknowledgement) => void;
  readonly reject: (error: unknown) => void;
};

/** Refuses events whose own counter has holes; gives back undefined when it is dense. */
const holeIn = (events: readonly DaemonEvent[]): InvalidError | undefined => {
  const at = events.findIndex((event, index) => index > 0 && event.n !== (events[index - 1]?.n ?? 0) + 1);
  return at === -1
    ? undefined
    : new InvalidError('invalid_request', `event ${events[at]?.n} does not follow the one before it`);
};

/**
 * Gives back the append function. It resolves once the events are durable. Errors: ConflictError `superseded` for an
 * older generation, InvalidError `invalid_request` for a gap, UnavailableError `database_unavailable`.
 */
export const makeAppendEvents = (ports: AppenderPorts): AppendEvents => {
  const waiting = new Map<string, Waiting[]>();
  const busy = new Set<string>();
  let lanes = 0;

  /** Takes sessions in the order in which they began to wait, skipping those that a running transaction holds. */
  const takeBatch = (): Waiting[] => {
    const batch: Waiting[] = [];
    let size = 0;
    for (const [uid, queue] of waiting) {
      if (busy.has(uid)) continue;
      while (queue.length > 0 && size < MAX_BATCH_EVENTS) {
        const next = queue.shift();
        if (next === undefined) break;
        batch.push(next);
        size += next.append.events.length;
      }
      if (queue.length === 0) waiting.delete(uid);
      if (size >= MAX_BATCH_EVENTS) break;
    }
    return batch;
  };

  const settle = (entry: Waiting, result: AppendResult | undefined): void => {
    if (result === undefined) entry.reject(new Error('a batch came back without a result for every append'));
    else if ('refused' in result) entry.reject(result.refused);
    else entry.resolve(result);
  };

  const store = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const results = await ports.storeBatch(batch.map((entry) => entry.append));
      batch.forEach((entry, index) => settle(entry, results[index]));
    } catch (error) {
      if (batch.length > 1 && ports.isDataError(error)) {
        for (const entry of batch) await store([entry]);
        return;
      }
      for (const entry of batch) entry.reject(error);
    }
  };

  const drive = (): void => {
    while (lanes < LANES) {
      const batch = takeBatch();
      if (batch.length === 0) return;
      const uids = new Set(batch.map((entry) => entry.append.sessionUid));
      for (const uid of uids) busy.add(uid);
      lanes += 1;
      void store(batch).finally(() => {
        for (const uid of uids) busy.delete(uid);
        lanes -= 1;
        drive();
      });
    }
  };

  return (append) =>
    new Promise((resolve, reject) => {
      const hole = holeIn(append.events);
      if (hole !== undefined) return reject(hole);
      const queue = waiting.get(append.sessionUid);
      if (queue === undefined) waiting.set(append.sessionUid, [{ append, resolve, reject }]);
      else queue.push({ append, resolve, reject });
      // Appends of one tick share a transaction.
      queueMicrotask(drive);
    });
};
