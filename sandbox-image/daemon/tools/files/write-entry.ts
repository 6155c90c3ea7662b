// Changes of entries of an open folder: whole files at once and durably, and removal of what is there without following it.
// Must not know tools. Source: A114, FF5, FF6.
import { randomBytes } from 'node:crypto';
import { link, lstat, open, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { type OpenFolder, PathRefusal, withFolder } from './folder-walk.ts';

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** Writes a whole file, mode 0600: beside first, on disk, then renamed. `exclusive`: refuses a name that is taken. */
export const writeEntry = async (
  folder: OpenFolder,
  name: string,
  content: string,
  exclusive: boolean,
): Promise<void> => {
  const beside = folder.at(`.${randomBytes(8).toString('hex')}.tmp`);
  const file = await open(beside, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    // A link fails for a name that is taken, a rename would replace it.
    if (exclusive) await link(beside, folder.at(name));
    else await rename(beside, folder.at(name));
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw new PathRefusal(`${name} exists already`);
    if (codeOf(error) === 'EISDIR') throw new PathRefusal(`${name} is a folder`);
    throw error;
  } finally {
    await unlink(beside).catch(() => {});
  }
  await folder.handle.sync();
};

/** Removes an entry and all below it; a link is removed, not followed. False: it is missing. */
export const removeEntry = async (folder: OpenFolder, name: string): Promise<boolean> => {
  try {
    if (!(await lstat(folder.at(name))).isDirectory()) {
      await unlink(folder.at(name));
      return true;
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
  await withFolder(folder.self, [name], false, async (below) => {
    for (const entry of await readdir(below.self)) await removeEntry(below, entry);
  });
  await rmdir(folder.at(name)).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return;
    if (codeOf(error) === 'ENOTDIR') throw new PathRefusal(`${name} changes while it is removed`);
    throw error;
  });
  await folder.handle.sync();
  return true;
};

/** Gives an entry another name, which must be free. */
export const moveEntry = async (from: OpenFolder, name: string, to: OpenFolder, newName: string): Promise<void> => {
  const info = await lstat(from.at(name)).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') throw new PathRefusal(`${name} does not exist`);
    throw error;
  });
  if (info.isSymbolicLink()) throw new PathRefusal(`${name} is a link, which is not followed`);
  try {
    if (info.isDirectory()) {
      // No other name can be taken for a folder by a link; an empty folder in its place is the only thing it replaces.
      await lstat(to.at(newName)).then(
        () => {
          throw new PathRefusal(`${newName} exists already`);
        },
        (error: unknown) => {
          if (codeOf(error) !== 'ENOENT') throw error;
        },
      );
      await rename(from.at(name), to.at(newName));
    } else {
      await link(from.at(name), to.at(newName));
      await unlink(from.at(name));
    }
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw new PathRefusal(`${newName} exists already`);
    if (codeOf(error) === 'EINVAL') throw new PathRefusal('a folder cannot be moved into itself');
    throw error;
  }
  await from.handle.sync();
  await to.handle.sync();
};
