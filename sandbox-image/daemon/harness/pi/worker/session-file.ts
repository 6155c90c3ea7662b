// The file of a conversation before Pi opens it: found by its name alone, refused when it is no whole conversation, and
// cut back to its last whole line, since Pi appends without looking. Must not know Pi.
// Source: FB8, known-bugs K11, K12, A151.
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
} from 'node:fs';
import { join } from 'node:path';

/** A conversation that is larger is not read into memory. Units: bytes. */
export const MAX_SESSION_BYTES = 64 * 1024 * 1024;

/** What was found. `discarded`: why an older file was put aside. */
export type SessionFile = Readonly<{ path: string | undefined; discarded: string | null }>;

const HEAD_BYTES = 65_536;

const readAt = (file: number, from: number, bytes: number): Buffer => {
  const buffer = Buffer.alloc(bytes);
  return buffer.subarray(0, readSync(file, buffer, 0, bytes, from));
};

/** Why the file cannot be gone on with; null when it can. Cuts half a line at its end. */
const judge = (path: string, id: string): string | null => {
  if (!lstatSync(path).isFile()) return 'it is no regular file';
  const file = openSync(path, 'r+');
  try {
    const { size } = fstatSync(file);
    if (size > MAX_SESSION_BYTES) return `it has ${size} bytes`;
    const head = readAt(file, 0, Math.min(size, HEAD_BYTES)).toString('utf8');
    const line = head.includes('\n') ? head.slice(0, head.indexOf('\n')) : '';
    let header: unknown;
    try {
      header = JSON.parse(line);
    } catch {
      return 'it has no header';
    }
    const fields = (typeof header === 'object' && header !== null ? header : {}) as Record<string, unknown>;
    if (fields['type'] !== 'session' || fields['id'] !== id) return 'its header is of something else';
    for (let end = size; end > 0; ) {
      const from = Math.max(0, end - HEAD_BYTES);
      const newline = readAt(file, from, end - from).lastIndexOf(0x0a);
      if (newline !== -1) {
        if (from + newline + 1 < size) ftruncateSync(file, from + newline + 1);
        return null;
      }
      end = from;
    }
    return 'it has no whole line';
  } finally {
    closeSync(file);
  }
};

/** The file of a conversation in the folder, made fit to be opened; one that cannot be is renamed and left. */
export const findSessionFile = (folder: string, id: string, nowMs: number): SessionFile => {
  mkdirSync(folder, { recursive: true });
  const name = readdirSync(folder)
    .filter((entry) => entry.endsWith(`_${id}.jsonl`))
    .sort()
    .at(-1);
  if (name === undefined) return { path: undefined, discarded: null };
  const path = join(folder, name);
  const reason = judge(path, id);
  if (reason === null) return { path, discarded: null };
  renameSync(path, `${path}.refused-${nowMs}`);
  return { path: undefined, discarded: `the stored conversation was put aside: ${reason}` };
};
