// Rows of text in columns that line up. Pure. Must not know what is listed.
import { plainLine } from './plain-text.ts';

/** Widest cell; longer text is cut. Units: characters. */
const MAX_CELL = 80;

/** One column: its head and the text of a row; `null` and `undefined` show as a dash. */
export type Column<T> = Readonly<{ head: string; cell: (row: T) => string | number | null | undefined }>;

/** The lines of a table with its heads, without trailing spaces; every cell is made harmless. */
export const tableLines = <T>(columns: readonly Column<T>[], rows: readonly T[]): readonly string[] => {
  const texts = [
    columns.map(({ head }) => head),
    ...rows.map((row) => columns.map(({ cell }) => plainLine(String(cell(row) ?? '-'), MAX_CELL) || '-')),
  ];
  const widths = columns.map((_column, at) => Math.max(...texts.map((cells) => cells[at]?.length ?? 0)));
  return texts.map((cells) =>
    cells
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
};

/** How long ago a time was, in one unit: `12s`, `5m`, `3h`, `2d`. */
export const ageText = (time: string, nowMs: number): string => {
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(time)) / 1_000));
  if (!Number.isFinite(seconds)) return '-';
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
};
