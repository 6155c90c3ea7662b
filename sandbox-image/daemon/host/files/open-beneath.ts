// Opens what a path of the workspace names, by the walk that follows no link (tools/files/folder-walk.ts), in the errors of the API.
// Must not know what is done with a file. Source: FF5, FF6.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { ConflictError, ForbiddenError, InvalidError, LimitError, NotFoundError } from '#base/errors.ts';
import { type OpenFolder, PathRefusal, withFolder } from '#daemon/tools/files/folder-walk.ts';

/** Longest name of one component, and most components. */
const MAX_NAME_BYTES = 255;
const MAX_DEPTH = 64;

/** Non-blocking, so that a FIFO without a writer answers at once. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/**
 * The names of a path, none for the workspace itself. Throws ForbiddenError `path_not_allowed` for absolute paths, `..`, NUL,
 * backslashes and names that are too long.
 */
export const namesOf = (path: string): readonly string[] => {
  if (path === '' || path === '.') return [];
  const names = path.replace(/^\.\//, '').split('/');
  const isAllowed = (name: string): boolean =>
    name !== '' &&
    name !== '.' &&
    name !== '..' &&
    !name.includes('\0') &&
    !name.includes('\\') &&
    Buffer.byteLength(name) <= MAX_NAME_BYTES;
  if (names.length <= MAX_DEPTH && names.every(isAllowed)) return names;
  throw new ForbiddenError('path_not_allowed', 'a path is relative to the workspace, without ".." and empty names');
};

/** The error that a failed system call stands for. `path` is what the caller asked for. */
export const fileError = (error: unknown, path: string): Error => {
  const { code } = error as NodeJS.ErrnoException;
  const named = path === '' ? 'the workspace' : JSON.stringify(path.slice(0, 256));
  switch (code) {
    case 'ENOENT':
      return new NotFoundError('not_found', `${named} is not in the workspace`);
    case 'ENOTDIR':
    case 'ELOOP':
      return new ForbiddenError(
        'path_not_allowed',
        `${named} leads over something that is no folder; links are not followed`,
      );
    case 'EISDIR':
    case 'ENXIO':
    case 'ENODEV':
      return new InvalidError('invalid_request', `${named} is no regular file`);
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new ForbiddenError('path_not_allowed', `the sandbox may not do that with ${named}`);
    case 'ENAMETOOLONG':
      return new ForbiddenError('path_not_allowed', `${named} is too long`);
    case 'ENOSPC':
    case 'EDQUOT':
      return new LimitError('storage_full', 'the volume of the workspace is full');
    case 'ETXTBSY':
    case 'EBUSY':
      return new ConflictError('conflict', `${named} is in use; try again`);
    default:
      return error instanceof Error ? error : new Error('a file operation failed', { cause: error });
  }
};

/**
 * Opens the folder that the names lead to, from the root, and gives it to `use`. Errors: those of fileError; NotFoundError when one is
 * missing.
 */
export const inFolder = async <T>(
  root: string,
  names: readonly string[],
  path: string,
  use: (folder: OpenFolder) => Promise<Readonly<{ result: T }>>,
): Promise<T> => {
  try {
    const done = await withFolder(root, names, false, use);
    if (done !== undefined) return done.result;
  } catch (error) {
    if (error instanceof PathRefusal) throw new ForbiddenError('path_not_allowed', error.message);
    throw fileError(error, path);
  }
  throw new NotFoundError('not_found', `${JSON.stringify(path.slice(0, 256))} is not in the workspace`);
};

/** Opens a name of an open folder for reading without following it; `undefined` for a link. Errors: Node's. */
export const openName = async (folder: OpenFolder, name: string): Promise<FileHandle | undefined> => {
  try {
    return await open(folder.at(name), FILE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ELOOP') return undefined;
    throw error;
  }
};
