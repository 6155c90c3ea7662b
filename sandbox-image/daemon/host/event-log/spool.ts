// The event log on disk: one file of lines per daemon, a small file with the number that the control plane has, and
// what daemons before this one left behind. Writes are synchronous; the log hands on the events of one moment together.
// Must not know the control plane. Source: FB9.
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { type DaemonEvent, daemonEvent } from '#schema/events/envelope.ts';

/** Lines that are read back at once. Units: bytes. */
const READ_BYTES = 1_048_576;
/** A file that is fully acknowledged is emptied above this. Units: bytes. */
const TRIM_BYTES = 1_048_576;
const NUMBER_WIDTH = 20;

/** One batch of lines that the control plane does not have yet. */
export type Batch = Readonly<{ lines: readonly string[]; bytes: number }>;

/** The spool of this daemon. `append` throws Node's error (`ENOSPC`) and then holds no part of the lines. */
export type Spool = Readonly<{
  /** One line, or several with line ends between them. */
  append: (lines: string) => void;
  /** The oldest unacknowledged lines, at most `maxLines`; empty when there are none. */
  next: (maxLines: number) => Batch;
  /** The control plane has the first `bytes` of what `next` gave, the last of them numbered `n`. */
  acknowledge: (bytes: number, n: number) => void;
  /** Unacknowledged bytes. */
  waitingBytes: () => number;
  close: () => void;
}>;

const FILE = /^events-.+\.ndjson$/;

/** Opens an empty spool; `name` is unique per daemon. The directory is made when it is missing. */
export const openSpool = (directory: string, name: string): Spool => {
  mkdirSync(directory, { recursive: true });
  const events = openSync(join(directory, `events-${name}.ndjson`), 'w+', 0o600);
  const numbers = openSync(join(directory, `events-${name}.ack`), 'w', 0o600);
  let begin = 0;
  let end = 0;
  return {
    append: (lines) => {
      const bytes = Buffer.from(`${lines}\n`, 'utf8');
      let written = 0;
      try {
        while (written < bytes.length) {
          written += writeSync(events, bytes, written, bytes.length - written, end + written);
        }
      } catch (error) {
        ftruncateSync(events, end);
        throw error;
      }
      end += bytes.length;
    },
    next: (maxLines) => {
      let size = Math.min(READ_BYTES, end - begin);
      for (;;) {
        if (size <= 0) return { lines: [], bytes: 0 };
        const buffer = Buffer.alloc(size);
        const read = readSync(events, buffer, 0, size, begin);
        const lines: string[] = [];
        let at = 0;
        while (lines.length < maxLines) {
          const newline = buffer.subarray(0, read).indexOf(0x0a, at);
          if (newline === -1) break;
          lines.push(buffer.toString('utf8', at, newline));
          at = newline + 1;
        }
        if (lines.length > 0 || size >= end - begin) return { lines, bytes: at };
        size = Math.min(size * 2, end - begin);
      }
    },
    acknowledge: (bytes, n) => {
      begin += bytes;
      writeSync(numbers, String(n).padStart(NUMBER_WIDTH, '0'), 0, 'utf8');
      if (begin === end && end > TRIM_BYTES) {
        ftruncateSync(events, 0);
        begin = 0;
        end = 0;
      }
    },
    waitingBytes: () => end - begin,
    close: () => {
      closeSync(events);
      closeSync(numbers);
    },
  };
};

const acknowledgedOf = (file: string): number => {
  try {
    const n = Number(readFileSync(file, 'utf8'));
    return Number.isSafeInteger(n) ? n : 0;
  } catch {
    return 0;
  }
};

const parseLine = (line: string): DaemonEvent | undefined => {
  try {
    return daemonEvent.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
};

/** What earlier daemons could not send. `forget` removes their files; call it when the events are in the new spool. */
export type Leftovers = Readonly<{ events: readonly DaemonEvent[]; forget: () => void }>;

/** The last event of an earlier generation that the control plane has, as the claim says. */
export type Stored = Readonly<{ generation: number; acknowledgedN: number }>;

const generationOf = (name: string): number => Number(/^events-(\d+)-/.exec(name)?.[1] ?? 0);

/**
 * Unsent events of earlier daemons, oldest first, each id once. An answer that a daemon did not live to read is made up
 * for by `stored`; a line that was cut by the death of its daemon is skipped.
 */
export const readLeftovers = (directory: string, stored: Stored | null): Leftovers => {
  let names: string[];
  try {
    names = readdirSync(directory).filter((name) => FILE.test(name));
  } catch {
    return { events: [], forget: () => {} };
  }
  names.sort((a, b) => generationOf(a) - generationOf(b));
  const events = new Map<string, DaemonEvent>();
  for (const name of names) {
    const file = join(directory, name);
    const known = stored?.generation === generationOf(name) ? stored.acknowledgedN : 0;
    const acknowledged = Math.max(known, acknowledgedOf(file.replace(/ndjson$/, 'ack')));
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const event = line === '' ? undefined : parseLine(line);
      if (event === undefined) continue;
      if (event.n > acknowledged) events.set(event.id, event);
      else events.delete(event.id);
    }
  }
  return {
    events: [...events.values()],
    forget: () => {
      for (const name of names) {
        rmSync(join(directory, name), { force: true });
        rmSync(join(directory, name.replace(/ndjson$/, 'ack')), { force: true });
      }
    },
  };
};
