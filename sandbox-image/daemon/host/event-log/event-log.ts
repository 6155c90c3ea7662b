// Numbers the events of this daemon, keeps them in the spool until the control plane has them, sends them in batches.
// Bounded: under pressure text deltas are left out first, then everything but what ends or opens something.
// Must not know HTTP, nor what the events mean. Source: 20-control-plane §8, FB9.
import { type BackoffBounds, backoffMs } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { asBeeuniError, ConflictError, InvalidError, UnauthenticatedError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { DaemonEvent, EventType, TypedEvent } from '#schema/events/envelope.ts';
import { MAX_APPEND_EVENTS } from '#schema/wire/turns.ts';
import { boundedJson } from './bound-event.ts';
import { closingsOf } from './close-leftovers.ts';
import type { Batch, Leftovers, Spool } from './spool.ts';

/** Where an event belongs. */
export type EventPlace = Readonly<{ threadId: string; turnId: string | null; hidden?: boolean | undefined }>;

/** Ports of the log. */
export type EventLogPorts = Readonly<{
  spool: Spool;
  leftovers: Leftovers;
  /** Sends a batch, each line the JSON of an event; resolves with the highest number that is stored. Rejects with a BeeuniError. */
  append: (lines: readonly string[], signal: AbortSignal) => Promise<Readonly<{ acknowledgedN: number }>>;
  /** A fresh id, at most 64 characters, unique in the installation. */
  newId: (n: number) => string;
  /** The control plane refuses this daemon: a newer claim exists, or the credential is gone. */
  onRefused: (reason: 'superseded' | 'unauthenticated') => void;
  clock: Clock;
  random: () => number;
  log: Logger;
  /** Unacknowledged bytes above which deltas are left out, and above which only KEPT types are written. */
  limits?: Readonly<{ softBytes: number; hardBytes: number }> | undefined;
}>;

/** The log of one generation. */
export type EventLog = Readonly<{
  /** Writes one event; never waits and never throws. Gives back its number, 0 when it was left out. */
  emit: (event: TypedEvent, place: EventPlace) => number;
  /** Resolves true when everything emitted so far is stored, false after `deadlineMs` or when the log was stopped. */
  flush: (deadlineMs: number) => Promise<boolean>;
  /** Events that the control plane does not have yet, in bytes. */
  waitingBytes: () => number;
  stop: () => void;
}>;

const SEND_BACKOFF: BackoffBounds = { baseMs: 200, maxMs: 5_000 };
const DEFAULT_LIMITS = { softBytes: 33_554_432, hardBytes: 67_108_864 };
/** What is kept even above the hard limit: without these a reader would wait for ever. */
const KEPT: ReadonlySet<EventType> = new Set<EventType>([
  'turn.started',
  'turn.ended',
  'prompt.steered',
  'tool.terminal',
  'effect.uncertain',
  'session.error',
  'session.idle',
  'session.compacted',
  'session.reverted',
  'session.unreverted',
  'session.forked',
  'permission.asked',
  'permission.replied',
  'question.asked',
  'question.replied',
  'question.rejected',
  'workspace.checked_out',
  'workspace.committed',
  'workspace.pushed',
  'workspace.push_failed',
  'workspace.commits_aside',
  'workspace.restored',
]);
/** Lines that are kept in memory while the disk takes nothing. */
const MAX_MEMORY_LINES = 2_000;

type Waiter = Readonly<{ n: number; resolve: (done: boolean) => void }>;

/** Starts the log: first what earlier daemons left, under new numbers and their own ids, and its ends; then what is emitted. */
export const startEventLog = (ports: EventLogPorts): EventLog => {
  const { spool, clock, log } = ports;
  const { softBytes, hardBytes } = ports.limits ?? DEFAULT_LIMITS;
  const stopped = new AbortController();
  /** Lines of this moment: one write takes them all. */
  let pending: string[] = [];
  let pendingCharacters = 0;
  const memory: string[] = [];
  let lastN = 0;
  let acknowledgedN = 0;
  let sending = false;
  let droppedEvents = 0;
  let waiters: Waiter[] = [];

  const settle = (): void => {
    if (pending.length === 0) return;
    const lines = pending;
    pending = [];
    pendingCharacters = 0;
    if (memory.length === 0) {
      try {
        spool.append(lines.join('\n'));
        return;
      } catch (error) {
        log.error('the event spool takes nothing; events are kept in memory', { err: error });
      }
    }
    memory.push(...lines);
  };

  const store = (line: string): void => {
    pending.push(line);
    pendingCharacters += line.length;
    if (pending.length === 1) setImmediate(settle);
  };

  /** `data` is JSON text. */
  const write = (
    envelope: Omit<DaemonEvent, 'n' | 'id' | 'data'> & Readonly<{ id?: string }>,
    data: string,
  ): number => {
    lastN += 1;
    const { id, ...rest } = envelope;
    const head = JSON.stringify({ n: lastN, id: id ?? ports.newId(lastN), ...rest });
    store(`${head.slice(0, -1)},"data":${data}}`);
    kick();
    return lastN;
  };

  const isLeftOut = (type: EventType): boolean => {
    const waiting = spool.waitingBytes() + pendingCharacters;
    if (waiting > hardBytes || memory.length + pending.length >= MAX_MEMORY_LINES) return !KEPT.has(type);
    return type === 'message.part.delta' && (waiting > softBytes || memory.length > 0);
  };

  const nextBatch = (): Batch => {
    settle();
    const fromDisk = spool.next(MAX_APPEND_EVENTS);
    if (fromDisk.lines.length > 0) return fromDisk;
    return { lines: memory.slice(0, MAX_APPEND_EVENTS), bytes: 0 };
  };

  const acknowledge = (batch: Batch, n: number): void => {
    if (batch.bytes > 0) spool.acknowledge(batch.bytes, n);
    else memory.splice(0, batch.lines.length);
    acknowledgedN = n;
    const done = waiters.filter((waiter) => waiter.n <= n);
    waiters = waiters.filter((waiter) => waiter.n > n);
    for (const waiter of done) waiter.resolve(true);
  };

  /** A prefix of the batch, for a control plane that does not take the whole. */
  const prefix = (batch: Batch, count: number): Batch => {
    const lines = batch.lines.slice(0, count);
    const bytes = batch.bytes === 0 ? 0 : lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
    return { lines, bytes };
  };

  const stop = (): void => {
    settle();
    stopped.abort();
    for (const waiter of waiters.splice(0)) waiter.resolve(false);
  };

  const refuse = (reason: 'superseded' | 'unauthenticated'): void => {
    stop();
    ports.onRefused(reason);
  };

  const emptied = (line: string): string =>
    JSON.stringify({ ...(JSON.parse(line) as DaemonEvent), hidden: true, data: { refused: true } });

  const sendAll = async (): Promise<void> => {
    let failures = 0;
    let size = MAX_APPEND_EVENTS;
    let empty = false;
    while (!stopped.signal.aborted) {
      const whole = nextBatch();
      if (whole.lines.length === 0) return;
      const batch = size < whole.lines.length ? prefix(whole, size) : whole;
      try {
        await ports.append(empty ? batch.lines.map(emptied) : batch.lines, stopped.signal);
        const last = JSON.parse(batch.lines.at(-1) ?? '{}') as Partial<DaemonEvent>;
        acknowledge(batch, last.n ?? acknowledgedN);
        failures = 0;
        size = MAX_APPEND_EVENTS;
        empty = false;
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (error instanceof ConflictError) return refuse('superseded');
        if (error instanceof UnauthenticatedError) return refuse('unauthenticated');
        if (error instanceof InvalidError) {
          if (size > 1) {
            size = Math.max(1, Math.floor(batch.lines.length / 2));
            continue;
          }
          const { type, n } = JSON.parse(batch.lines[0] ?? '{}') as Partial<DaemonEvent>;
          log.error('an event was refused', { type, n, code: error.code, err: error });
          if (!empty) {
            empty = true;
            continue;
          }
        }
        failures += 1;
        if (failures === 1)
          log.warn('events wait for the control plane', { code: asBeeuniError(error)?.code, err: error });
        await sleep(clock, backoffMs(SEND_BACKOFF, failures, ports.random), stopped.signal);
      }
    }
  };

  const kick = (): void => {
    if (sending || stopped.signal.aborted) return;
    sending = true;
    setImmediate(() => {
      sendAll()
        .catch((error: unknown) => log.error('sending events broke', { err: error }))
        .finally(() => {
          sending = false;
          if (!stopped.signal.aborted && nextBatch().lines.length > 0) kick();
        });
    });
  };

  for (const event of ports.leftovers.events) {
    const { n: _n, data, ...rest } = event;
    write(rest, JSON.stringify(data));
  }
  const at = new Date(clock.nowMs()).toISOString();
  for (const event of closingsOf(ports.leftovers.events)) {
    const { data, ...rest } = event;
    write({ ...rest, at, hidden: false, causedBy: null }, JSON.stringify(data));
  }
  settle();
  ports.leftovers.forget();

  return {
    emit: (event, place) => {
      if (isLeftOut(event.type)) {
        droppedEvents += 1;
        if (droppedEvents === 1)
          log.warn('events are left out: the spool is full', { waitingBytes: spool.waitingBytes() });
        return 0;
      }
      const envelope = {
        type: event.type,
        at: new Date(clock.nowMs()).toISOString(),
        threadId: place.threadId,
        turnId: place.turnId,
        hidden: place.hidden ?? false,
        causedBy: null,
      };
      return write(envelope, boundedJson(event.data));
    },
    flush: (deadlineMs) => {
      if (acknowledgedN >= lastN) return Promise.resolve(true);
      if (stopped.signal.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        const waiter: Waiter = {
          n: lastN,
          resolve: (done) => {
            cancel();
            resolve(done);
          },
        };
        const cancel = clock.startTimer(deadlineMs, () => {
          waiters = waiters.filter((other) => other !== waiter);
          resolve(false);
        });
        waiters.push(waiter);
      });
    },
    waitingBytes: () => spool.waitingBytes() + pendingCharacters,
    stop,
  };
};
