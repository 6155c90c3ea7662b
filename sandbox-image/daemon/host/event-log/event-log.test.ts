// Numbering, sending and pressure, on an injected clock and a spool in memory.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ConflictError, InvalidError, UnavailableError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import type { DaemonEvent, TypedEvent } from '#schema/events/envelope.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { type EventLogPorts, startEventLog } from './event-log.ts';
import type { Spool } from './spool.ts';

const memorySpool = (): Spool & { full: boolean } => {
  let lines: string[] = [];
  const size = (list: readonly string[]) => list.reduce((sum, line) => sum + line.length + 1, 0);
  return {
    full: false,
    append(text) {
      if (this.full) throw new Error('ENOSPC');
      lines.push(...text.split('\n'));
    },
    next: (maxLines) => ({ lines: lines.slice(0, maxLines), bytes: size(lines.slice(0, maxLines)) }),
    acknowledge: (bytes) => {
      let left = bytes;
      lines = lines.filter((line) => {
        if (left <= 0) return true;
        left -= line.length + 1;
        return false;
      });
    },
    waitingBytes: () => size(lines),
    close: () => {},
  };
};

const idle: TypedEvent = { type: 'session.idle', data: {} };
const delta: TypedEvent = {
  type: 'message.part.delta',
  data: { messageId: 'm', partId: 'p', field: 'text', delta: 'x' },
};
const place = { threadId: 'root', turnId: null };

const aLog = (ports: Partial<EventLogPorts> = {}) => {
  const clock = manualClock();
  const stored: DaemonEvent[] = [];
  const spool = memorySpool();
  const control = { fail: undefined as Error | undefined, batches: [] as number[], refused: [] as string[] };
  const log = startEventLog({
    spool,
    leftovers: { events: [], forget: () => {} },
    append: async (sent) => {
      const events = sent.map((line) => JSON.parse(line) as DaemonEvent);
      control.batches.push(events.length);
      if (control.fail !== undefined) throw control.fail;
      stored.push(...events);
      return { acknowledgedN: events.at(-1)?.n ?? 0 };
    },
    newId: (n) => `e${n}`,
    onRefused: (reason) => control.refused.push(reason),
    clock,
    random: () => 0.5,
    log: createLogger({ level: 'error', write: () => {} }),
    ...ports,
  });
  return { log, clock, stored, spool, control };
};

describe('startEventLog', () => {
  it('numbers events densely from 1 and sends those of one moment together', async () => {
    const { log, stored, control, clock } = aLog();
    for (let at = 0; at < 5; at += 1) log.emit(idle, place);
    await clock.advance(0);
    assert.deepEqual(
      stored.map((event) => event.n),
      [1, 2, 3, 4, 5],
    );
    assert.deepEqual(control.batches, [5]);
  });

  it('FB9 sends the same numbers and ids again after the control plane was gone', async () => {
    const { log, stored, control, clock } = aLog();
    control.fail = new UnavailableError('control_plane_unavailable', 'gone');
    log.emit(idle, place);
    await clock.advance(60_000);
    log.emit(idle, place);
    assert.ok(control.batches.length > 5 && control.batches.length < 60, String(control.batches.length));
    control.fail = undefined;
    await clock.advance(6_000);
    assert.deepEqual(
      stored.map((event) => [event.n, event.id]),
      [
        [1, 'e1'],
        [2, 'e2'],
      ],
    );
  });

  it('D7 stops at the first answer that a newer claim exists', async () => {
    const { log, control, clock } = aLog();
    control.fail = new ConflictError('superseded', 'newer');
    log.emit(idle, place);
    await clock.advance(60_000);
    assert.deepEqual(control.refused, ['superseded']);
    assert.equal(control.batches.length, 1);
    assert.equal(await log.flush(1_000), false);
  });

  it('sends what an earlier daemon left first, with its own ids and new numbers', async () => {
    let forgotten = false;
    const old = { n: 41, id: 'old', at: '2026-01-01T00:00:00.000Z', ...place, hidden: false, causedBy: null };
    const leftovers = { events: [{ ...old, type: 'session.idle', data: {} }], forget: () => void (forgotten = true) };
    const { log, stored, clock } = aLog({ leftovers });
    log.emit(idle, place);
    await clock.advance(0);
    assert.deepEqual(
      stored.map((event) => [event.n, event.id]),
      [
        [1, 'old'],
        [2, 'e2'],
      ],
    );
    assert.ok(forgotten);
  });

  it('finds the one event that is refused, empties it and goes on', async () => {
    const stored: DaemonEvent[] = [];
    const { log, clock } = aLog({
      append: async (lines) => {
        const events = lines.map((line) => JSON.parse(line) as DaemonEvent);
        if (events.some((event) => 'poison' in event.data)) throw new InvalidError('invalid_request', 'no');
        stored.push(...events);
        return { acknowledgedN: 0 };
      },
    });
    for (let at = 0; at < 4; at += 1) log.emit(idle, place);
    log.emit({ type: 'todo.updated', data: { poison: true } }, place);
    for (let at = 0; at < 4; at += 1) log.emit(idle, place);
    await clock.advance(1_000);
    assert.deepEqual(
      stored.map((event) => event.n),
      [1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    assert.deepEqual([stored[4]?.hidden, stored[4]?.data], [true, { refused: true }]);
  });

  it('FB9 leaves out deltas first, then all but what ends something, and never grows without bound', async () => {
    const { log, control, clock } = aLog({ limits: { softBytes: 1_000, hardBytes: 3_000 } });
    control.fail = new UnavailableError('control_plane_unavailable', 'gone');
    while (log.waitingBytes() <= 1_000) assert.notEqual(log.emit(delta, place), 0);
    assert.equal(log.emit(delta, place), 0);
    const todo: TypedEvent = { type: 'todo.updated', data: {} };
    while (log.waitingBytes() <= 3_000) assert.notEqual(log.emit(todo, place), 0);
    assert.equal(log.emit(todo, place), 0);
    assert.notEqual(log.emit(idle, place), 0);
    await clock.advance(0);
  });

  it('FB7 goes on in memory while the disk takes nothing', async () => {
    const { log, stored, clock, spool } = aLog();
    spool.full = true;
    log.emit(idle, place);
    log.emit(idle, place);
    await clock.advance(0);
    assert.deepEqual(
      stored.map((event) => event.n),
      [1, 2],
    );
    assert.equal(await log.flush(1_000), true);
  });
});
