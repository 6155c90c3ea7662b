// Files below one folder without ever following a link: each step opens the next name relative to the folder that is
// already open, so that nothing can be swapped between a check and its use. Linux: `/proc/self/fd/<n>/<name>` is the
// `openat` that Node lacks. Must not know tools. Source: A114, FF5, FF6.
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises';

/** Why a path is not used, in words for whoever named it. */
export class PathRefusal extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** An open folder; `at(name)` is a path of an entry that leads there wherever the folder is moved to. */
export type OpenFolder = Readonly<{ at: (name: string) => string; self: string; handle: FileHandle }>;

const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const MAX_DEPTH = 32;
const MAX_NAME_BYTES = 255;

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

const asFolder = (handle: FileHandle): OpenFolder => {
  const self = `/proc/self/fd/${handle.fd}`;
  return { at: (name) => `${self}/${name}`, self, handle };
};

const hasUnsafe = (name: string): boolean =>
  Array.from(name).some((character) => character < ' ' || character === '\u007f' || character === '\\');

/** Names of a path below `root`, for example `['a', 'b.md']` for `memory/a/b.md`. Throws PathRefusal. */
export const namesBelow = (root: string, path: string): readonly string[] => {
  const trimmed = path.replace(/\/+$/, '');
  if (trimmed === root) return [];
  if (!trimmed.startsWith(`${root}/`)) throw new PathRefusal(`the path must be ${root} or begin with ${root}/`);
  const names = trimmed.slice(root.length + 1).split('/');
  if (names.length > MAX_DEPTH) throw new PathRefusal(`the path has more than ${MAX_DEPTH} parts`);
  for (const name of names) {
    if (name === '' || name === '.' || name === '..') throw new PathRefusal('the path has an empty, "." or ".." part');
    if (hasUnsafe(name)) throw new PathRefusal('the path has a control character or a backslash');
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw new PathRefusal('a part of the path is too long');
    if (name.toLowerCase() === '.git') throw new PathRefusal('the path leads into a git folder');
  }
  return names;
};

const openEntry = async (path: string, name: string): Promise<OpenFolder | undefined> => {
  try {
    return asFolder(await open(path, FOLDER_FLAGS));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (codeOf(error) === 'ENOTDIR' || codeOf(error) === 'ELOOP') {
      throw new PathRefusal(`${name} is no folder; links are not followed`);
    }
    throw error;
  }
};

/** The result of work in an open folder. Throws PathRefusal when it failed because the folder was removed meanwhile. */
const inPlace = async <T>(folder: OpenFolder, work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    const isRemoved = codeOf(error) === 'ENOENT' && (await folder.handle.stat()).nlink === 0;
    throw isRemoved ? new PathRefusal('a folder of the path was removed meanwhile; try again') : error;
  }
};

/**
 * Opens `names` below the folder `base` one by one and hands the last to `use`; with `make` missing ones are made, mode
 * 0700. Gives back undefined when one is missing. Throws PathRefusal for a link or something else that is no folder, and when a
 * folder is removed while it is used.
 */
export const withFolder = async <T>(
  base: string,
  names: readonly string[],
  make: boolean,
  use: (folder: OpenFolder) => Promise<T>,
): Promise<T | undefined> => {
  let folder: OpenFolder | undefined = asFolder(await open(base, constants.O_RDONLY | constants.O_DIRECTORY));
  try {
    for (const name of names) {
      let next = await openEntry(folder.at(name), name);
      if (next === undefined && make) {
        await inPlace(folder, mkdir(folder.at(name), { mode: 0o700 })).catch((error: unknown) => {
          if (codeOf(error) !== 'EEXIST') throw error;
        });
        next = await openEntry(folder.at(name), name);
      }
      await folder.handle.close();
      folder = next;
      if (folder === undefined) return undefined;
    }
    return await inPlace(folder, use(folder));
  } finally {
    await folder?.handle.close();
  }
};

/** What an entry is, without following it. */
export type EntryKind = 'file' | 'folder' | 'other' | 'missing';

/** Kind of an entry of an open folder. */
export const kindOf = async (folder: OpenFolder, name: string): Promise<EntryKind> => {
  try {
    const info = await lstat(folder.at(name));
    return info.isFile() ? 'file' : info.isDirectory() ? 'folder' : 'other';
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'missing';
    throw error;
  }
};

/**
 * The bytes of a regular file that has one name only: a hard link may be a file from elsewhere. A pipe or a device is not
 * waited for. Gives back undefined when it is missing; throws PathRefusal for anything else that is no such file.
 */
export const readEntry = async (folder: OpenFolder, name: string, maxBytes: number): Promise<Buffer | undefined> => {
  let file: FileHandle;
  try {
    file = await open(folder.at(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (codeOf(error) === 'ELOOP' || codeOf(error) === 'ENXIO') {
      throw new PathRefusal(`${name} is no regular file; links are not followed`);
    }
    throw error;
  }
  try {
    const info = await file.stat();
    if (!info.isFile()) throw new PathRefusal(`${name} is no regular file`);
    if (info.nlink > 1) throw new PathRefusal(`${name} is a hard link, which is not read`);
    if (info.size > maxBytes) throw new PathRefusal(`${name} has ${info.size} bytes; at most ${maxBytes} are read`);
    // The file may grow while it is read, so the limit holds for what comes, not for what was promised.
    const bytes = Buffer.alloc(Math.min(maxBytes, info.size) + 1);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length > info.size) throw new PathRefusal(`${name} changes while it is read`);
    return bytes.subarray(0, length);
  } finally {
    await file.close();
  }
};
