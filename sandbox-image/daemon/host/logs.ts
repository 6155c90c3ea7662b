// The newest lines of daemon and harness, in memory: a ring with a number of lines and a length per line.
// Must not know who writes. Source: A200, FB5.

/** Whose lines. */
export type LogSource = 'daemon' | 'harness';

/** A ring of lines. */
export type LogRing = Readonly<{
  add: (source: LogSource, line: string) => void;
  /** The newest `count` lines of a source, oldest first. */
  tail: (source: LogSource | 'all', count: number) => readonly string[];
}>;

/** Lines that are kept, and characters of each. Source: A200. */
const MAX_LINES = 5_000;
const MAX_LINE_CHARACTERS = 2_048;

/** A ring whose lines pass `redact` first. */
export const createLogRing = (redact: (text: string) => string): LogRing => {
  let lines: Readonly<{ source: LogSource; line: string }>[] = [];
  return {
    add: (source, line) => {
      lines.push({ source, line: redact(line.slice(0, MAX_LINE_CHARACTERS)) });
      if (lines.length > MAX_LINES * 2) lines = lines.slice(-MAX_LINES);
    },
    tail: (source, count) =>
      lines
        .filter((entry) => source === 'all' || entry.source === source)
        .slice(-Math.min(count, MAX_LINES))
        .map((entry) => entry.line),
  };
};
