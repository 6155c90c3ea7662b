// Reads files of a commit from git's objects: no checkout, no link followed, no filter run, sizes capped.
// Must not know what the files mean. Source: 20-control-plane §6, FE5.

import type { FoundFile } from '#schema/manifest/unread-file.ts';
import type { Git } from './run.ts';

/** One file of a commit, or why it is not one. `size` in bytes. */
export type ObjectFile = FoundFile;

/** The mirror cannot give the objects of a commit: it is damaged, or the commit is not in it. */
export class MirrorDamagedError extends Error {
  constructor(detail: string) {
    super(`the mirror cannot be read: ${detail.slice(0, 200)}`);
    this.name = 'MirrorDamagedError';
  }
}

/** Reads the given paths of a commit, each file up to `maxBytes`. Errors: MirrorDamagedError. */
export type ReadFiles = (
  mirror: string,
  commit: string,
  paths: readonly string[],
  maxBytes: number,
) => Promise<ReadonlyMap<string, ObjectFile>>;

const TIMEOUT_MS = 30_000;
const MAX_PATHS = 256;

type Entry = Readonly<{ mode: string; type: string; oid: string; size: number }>;

const parseTree = (listing: string): ReadonlyMap<string, Entry> => {
  const entries = new Map<string, Entry>();
  for (const line of listing.split('\0')) {
    const match = /^(\d{6}) (\w+) ([0-9a-f]+) +(\d+|-)\t([\s\S]+)$/.exec(line);
    if (match === null) continue;
    const [, mode = '', type = '', oid = '', size = '', path = ''] = match;
    entries.set(path, { mode, type, oid, size: size === '-' ? 0 : Number(size) });
  }
  return entries;
};

const decoder = new TextDecoder('utf-8', { fatal: true });

const textFile = (bytes: Buffer): ObjectFile => {
  try {
    return { kind: 'text', text: decoder.decode(bytes) };
  } catch {
    return { kind: 'not-utf8' };
  }
};

/** Contents of `cat-file --batch`, in the order that they were asked for. */
const parseBatch = (output: Buffer): readonly (Buffer | undefined)[] => {
  const contents: (Buffer | undefined)[] = [];
  for (let at = 0; at < output.length; ) {
    const newline = output.indexOf(0x0a, at);
    if (newline < 0) break;
    const head = output.subarray(at, newline).toString('utf8');
    const size = /^[0-9a-f]+ blob (\d+)$/.exec(head)?.[1];
    at = newline + 1;
    if (size === undefined) {
      contents.push(undefined);
      continue;
    }
    contents.push(output.subarray(at, at + Number(size)));
    at += Number(size) + 1;
  }
  return contents;
};

/** Makes the reader. */
export const makeReadFiles =
  (git: Git): ReadFiles =>
  async (mirror, commit, paths, maxBytes) => {
    const wanted = [...new Set(paths)].slice(0, MAX_PATHS);
    const result = new Map<string, ObjectFile>(wanted.map((path) => [path, { kind: 'missing' }]));
    const inside = wanted.filter((path) =>
      path.split('/').every((part) => part !== '' && part !== '.' && part !== '..'),
    );
    if (inside.length === 0) return result;
    const listed = await git.run({
      args: ['--git-dir', mirror, 'ls-tree', '-z', '-l', '--full-tree', commit, '--', ...inside],
      timeoutMs: TIMEOUT_MS,
    });
    if (!listed.ok) throw new MirrorDamagedError(listed.stderr);
    const blobs: { path: string; oid: string }[] = [];
    for (const [path, entry] of parseTree(listed.stdout.toString('utf8'))) {
      if (!result.has(path)) continue;
      if (entry.mode === '120000') result.set(path, { kind: 'symlink' });
      else if (entry.type !== 'blob') result.set(path, { kind: 'not-a-file' });
      else if (entry.size > maxBytes) result.set(path, { kind: 'too-large', size: entry.size });
      else blobs.push({ path, oid: entry.oid });
    }
    if (blobs.length === 0) return result;
    const read = await git.run({
      args: ['--git-dir', mirror, 'cat-file', '--batch'],
      input: `${blobs.map(({ oid }) => oid).join('\n')}\n`,
      timeoutMs: TIMEOUT_MS,
      maxOutputBytes: blobs.length * (maxBytes + 256),
    });
    const contents = parseBatch(read.stdout);
    blobs.forEach(({ path }, index) => {
      const content = contents[index];
      if (content === undefined) throw new MirrorDamagedError(read.stderr);
      result.set(path, textFile(content));
    });
    return result;
  };
