// Files of the workspace at which OpenCode would wait for ever or read without an end: it opens its configuration there
// whatever OPENCODE_DISABLE_PROJECT_CONFIG says (measured, 1.18.33). Must not know turns. Source: FE5, FF5.
import { closeSync, constants, lstatSync, openSync, readdirSync, rmSync, type Stats, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '#base/log.ts';

/** Where OpenCode looks, below the workspace, and the git that it runs. */
const PLACES = ['opencode.json', 'opencode.jsonc', '.opencode', '.gitignore', '.gitattributes', '.ignore'];
/** Larger than any configuration. Units: bytes. */
const MAX_BYTES = 8_388_608;
const READ_WHOLE = /\.(jsonc?|md)$/;
const MAX_DEPTH = 6;
const MAX_ENTRIES = 4_000;

const lookAt = (look: typeof lstatSync, path: string): Stats | undefined => {
  try {
    return look(path);
  } catch {
    return undefined;
  }
};

const isPlain = (info: Stats): boolean => info.isFile() || info.isDirectory();

/** Lets go whoever waits for the other end of a pipe: it reads nothing, and goes on. */
const release = (path: string): void => {
  try {
    closeSync(openSync(path, constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW));
  } catch {
    // It is gone, or something else by now.
  }
};

/**
 * Removes pipes, sockets and devices, which no repository can hold, and gives back what stands in the way beside them: a
 * link to one, or a file that is far too large. Undefined: nothing does. Never throws.
 */
export const clearTraps = (workspace: string, log: Logger): string | undefined => {
  let entries = 0;
  const trapIn = (name: string, depth: number): string | undefined => {
    const path = join(workspace, name);
    const own = lookAt(lstatSync, path);
    if (own === undefined) return undefined;
    entries += 1;
    if (!own.isSymbolicLink() && !isPlain(own)) {
      log.warn('something that is no file was removed, since the harness would wait for it', { name });
      if (own.isFIFO()) release(path);
      rmSync(path, { force: true });
      return undefined;
    }
    const info = own.isSymbolicLink() ? lookAt(statSync, path) : own;
    if (info === undefined) return undefined;
    if (!isPlain(info)) return `${name} of the checkout leads to something that is no file; remove it`;
    if (info.isFile()) {
      const isTooLarge = info.size > MAX_BYTES && READ_WHOLE.test(name);
      return isTooLarge
        ? `${name} of the checkout has ${info.size} bytes, which the harness would read whole`
        : undefined;
    }
    if (depth >= MAX_DEPTH || name.endsWith('/node_modules')) return undefined;
    for (const entry of readdirSync(path)) {
      if (entries >= MAX_ENTRIES) return undefined;
      const found = trapIn(join(name, entry), depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  try {
    for (const place of PLACES) {
      const found = trapIn(place, 0);
      if (found !== undefined) return found;
    }
  } catch (error) {
    log.warn('the checkout could not be looked at', { err: error });
  }
  return undefined;
};

/** Files that git and the searches read in every folder. */
const READ_EVERYWHERE: ReadonlySet<string> = new Set(['.gitignore', '.gitattributes', '.ignore', '.rgignore']);
const MAX_FOLDERS = 20_000;

/** Removes pipes of such a name in every folder of the workspace, without holding up the process. Never rejects. */
export const clearPipes = async (workspace: string, signal: AbortSignal, log: Logger): Promise<void> => {
  const folders = [workspace];
  for (let at = 0; at < folders.length && at < MAX_FOLDERS && !signal.aborted; at += 1) {
    const folder = folders[at] ?? workspace;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && entry.name !== '.git' && entry.name !== 'node_modules') folders.push(path);
      if (!entry.isFIFO() || !READ_EVERYWHERE.has(entry.name)) continue;
      log.warn('a pipe was removed, since the harness would wait for it', { path });
      release(path);
      rmSync(path, { force: true });
    }
  }
};
