// Keeps usage rows until they are in the database: batches in memory, a bounded file while the database is away.
// A row has an id, so a batch that is stored twice counts once. Must not know SQL. Source: 20-control-plane §5, FC11.
import { appendFile, readFile, rename, rm, stat } from 'node:fs/promises';
import type { CancelTimer, Clock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { UsageRecorder, UsageRow } from './ports.ts';

/** Stores rows; rows whose id is there already are skipped. Errors: UnavailableError `database_unavailable`. */
export type InsertUsage = (rows: readonly UsageRow[]) => Promise<void>;

/** A recorder with its life. */
export type UsageSpool = UsageRecorder &
  Readonly<{
    /** Reads what an earlier process left in the file. */
    start: () => Promise<void>;
    /** Stores or spools what is left. */
    stop: () => Promise<void>;
    /** Resolves when nothing waits in memory. */
    idle: () => Promise<void>;
  }>;

const BATCH_ROWS = 500;
/** Rows that wait in memory at most before calls are refused. */
const MAX_WAITING_ROWS = 50_000;
const FLUSH_AFTER_MS = 200;
const RETRY_AFTER_MS = 5_000;

/**
 * Makes the recorder. `file`: where rows wait while the database is away; `maxFileBytes`: above it, `isFull`. `onSettled`
 * is told of rows that are in the database now, or lost for good.
 */
export const makeUsageRecorder = (
  ports: Readonly<{
    insert: InsertUsage;
    file: string;
    maxFileBytes: number;
    clock: Clock;
    log: Logger;
    onSettled?: ((rows: readonly UsageRow[]) => void) | undefined;
  }>,
): UsageSpool => {
  const { insert, file, clock, log, onSettled = () => undefined } = ports;
  const draining = `${file}.draining`;
  let waiting: UsageRow[] = [];
  let spooledBytes = 0;
  let isAway = false;
  let cancel: CancelTimer | undefined;
  let running: Promise<void> = Promise.resolve();

  const spool = async (rows: readonly UsageRow[]): Promise<void> => {
    if (rows.length === 0) return;
    const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    await appendFile(file, text, { mode: 0o600 });
    spooledBytes += Buffer.byteLength(text);
  };

  /** Rows of a file; a line that a crash cut off is skipped. */
  const rowsOf = async (path: string): Promise<UsageRow[]> => {
    const text = await readFile(path, 'utf8').catch(() => '');
    return text.split('\n').flatMap((line) => {
      try {
        return line === '' ? [] : [JSON.parse(line) as UsageRow];
      } catch {
        return [];
      }
    });
  };

  /** Stores rows; what the database will never take is halved until the bad row is alone, so that it holds up no other. */
  const store = async (rows: readonly UsageRow[]): Promise<void> => {
    try {
      await insert(rows);
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      if (rows.length > 1) {
        const half = Math.ceil(rows.length / 2);
        await store(rows.slice(0, half));
        await store(rows.slice(half));
        return;
      }
      log.error('a usage row cannot be stored', { id: rows[0]?.id, err: error });
    }
    onSettled(rows);
  };
  const insertAll = async (rows: readonly UsageRow[]): Promise<void> => {
    for (let at = 0; at < rows.length; at += BATCH_ROWS) await store(rows.slice(at, at + BATCH_ROWS));
  };

  /** The file is moved aside first, so that rows that come meanwhile are not lost with it. */
  const drainFile = async (): Promise<void> => {
    if (spooledBytes === 0) return;
    const left = await rowsOf(draining);
    if (left.length === 0) await rename(file, draining).catch(() => undefined);
    await insertAll(left.length > 0 ? left : await rowsOf(draining));
    await rm(draining, { force: true });
    spooledBytes = await sizeOf(file);
    if (spooledBytes > 0) await drainFile();
  };

  const flush = async (): Promise<void> => {
    const rows = waiting;
    waiting = [];
    try {
      await insertAll(rows);
      await drainFile();
      isAway = false;
    } catch (error) {
      isAway = true;
      log.warn('usage rows wait on disk for the database', { count: rows.length, err: error });
      await spool(rows).catch((lost: unknown) => {
        log.error('usage rows cannot be written to disk and wait in memory', { count: rows.length, err: lost });
        waiting = [...rows, ...waiting];
      });
      schedule(RETRY_AFTER_MS);
    }
  };

  const flushNow = (): Promise<void> => {
    cancel?.();
    cancel = undefined;
    running = running.then(flush);
    return running;
  };
  const schedule = (delayMs: number): void => {
    cancel ??= clock.startTimer(delayMs, () => void flushNow());
  };

  return {
    record: (row) => {
      waiting.push(row);
      // While a flush runs, rows gather for the next one; while the database is away, for the next try.
      if (waiting.length === BATCH_ROWS && cancel !== undefined && !isAway) void flushNow();
      else schedule(isAway ? RETRY_AFTER_MS : FLUSH_AFTER_MS);
    },
    isFull: () => spooledBytes >= ports.maxFileBytes || waiting.length >= MAX_WAITING_ROWS,
    start: async () => {
      spooledBytes = (await sizeOf(file)) + (await sizeOf(draining));
      if (spooledBytes > 0) schedule(FLUSH_AFTER_MS);
    },
    stop: async () => {
      await flushNow();
      cancel?.();
    },
    idle: () => (waiting.length > 0 ? flushNow() : running),
  };
};

const sizeOf = async (path: string): Promise<number> =>
  stat(path).then(
    (found) => found.size,
    () => 0,
  );
