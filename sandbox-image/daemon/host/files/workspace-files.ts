// Reads, lists and writes files of the workspace for people. The agent may have made every one of them, and may change any at any
// moment. Must not know HTTP. Source: 20-control-plane §3, FF5, FF6.
import { randomBytes } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { type FileHandle, lstat, open, opendir, rename, unlink } from 'node:fs/promises';
import { ForbiddenError, InvalidError, LimitError } from '#base/errors.ts';
import type { OpenFolder } from '#daemon/tools/files/folder-walk.ts';
import {
  type FileContent,
  type FileView,
  MAX_FILE_BYTES,
  MAX_FOLDER_ENTRIES,
  type WrittenFile,
} from '#schema/wire/files.ts';
import { inFolder, namesOf, openName } from './open-beneath.ts';

/** The files of one workspace. Errors: ForbiddenError `path_not_allowed`, NotFoundError, InvalidError, LimitError. */
export type WorkspaceFiles = Readonly<{
  read: (path: string) => Promise<FileView>;
  write: (path: string, content: FileContent) => Promise<WrittenFile>;
}>;

/** Entries that are read of a folder at most; of those the first by name are shown. */
const MAX_READ_ENTRIES = 10_000;

const typeOf = (entry: Dirent): 'file' | 'folder' | 'link' | 'other' => {
  if (entry.isSymbolicLink()) return 'link';
  if (entry.isDirectory()) return 'folder';
  return entry.isFile() ? 'file' : 'other';
};

const listFolder = async (folder: Pick<OpenFolder, 'self'>, path: string): Promise<FileView> => {
  const all: Dirent[] = [];
  let isCut = false;
  for await (const entry of await opendir(folder.self, { bufferSize: 256 })) {
    if (all.length < MAX_READ_ENTRIES) all.push(entry);
    else {
      isCut = true;
      break;
    }
  }
  const shown = all.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MAX_FOLDER_ENTRIES);
  const entries = [];
  for (const entry of shown) {
    const type = typeOf(entry);
    // An entry may be gone by now; then its size is not known.
    const stat = type === 'file' ? await lstat(`${folder.self}/${entry.name}`).catch(() => undefined) : undefined;
    entries.push({ name: entry.name, type, sizeBytes: stat?.size ?? null });
  }
  return { type: 'folder', path, entries, truncated: isCut || all.length > shown.length };
};

const readStart = async (file: FileHandle, limit: number): Promise<Buffer> => {
  const buffer = Buffer.alloc(limit);
  let size = 0;
  while (size < limit) {
    const { bytesRead } = await file.read(buffer, size, limit - size, size);
    if (bytesRead === 0) break;
    size += bytesRead;
  }
  return buffer.subarray(0, size);
};

/** The bytes as text when they are UTF-8; a character that the limit cut in two is left out. */
const textOf = (bytes: Buffer, truncated: boolean): string | undefined => {
  for (let cut = 0; cut <= (truncated ? 3 : 0); cut += 1) {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, bytes.length - cut));
    } catch {
      // Tried again with less, then given as bytes.
    }
  }
  return undefined;
};

const readOpened = async (file: FileHandle, path: string): Promise<FileView> => {
  const stat = await file.stat();
  if (!stat.isFile()) throw new InvalidError('invalid_request', `${JSON.stringify(path)} is no regular file`);
  if (stat.nlink > 1) {
    throw new ForbiddenError('path_not_allowed', `${JSON.stringify(path)} is linked from another place as well`);
  }
  const bytes = await readStart(file, Math.min(MAX_FILE_BYTES, stat.size));
  const truncated = stat.size > bytes.length;
  const text = bytes.includes(0) ? undefined : textOf(bytes, truncated);
  const content = text ?? bytes.toString('base64');
  const encoding = text === undefined ? ('base64' as const) : ('utf8' as const);
  return { type: 'file', path, sizeBytes: stat.size, encoding, content, truncated };
};

const bytesOf = ({ encoding, content }: FileContent): Buffer => {
  const bytes = Buffer.from(content, encoding);
  const isBase64 = encoding !== 'base64' || bytes.toString('base64').replace(/=+$/, '') === content.replace(/=+$/, '');
  if (!isBase64) throw new InvalidError('invalid_request', 'body.content is not base64');
  if (bytes.length > MAX_FILE_BYTES) throw new LimitError('file_too_large', 'a file is written up to 1 MiB');
  return bytes;
};

/** Mode of the file that is replaced; undefined when there is none. Errors: ForbiddenError, InvalidError. */
const modeBefore = async (folder: OpenFolder, name: string, path: string): Promise<number | undefined> => {
  const before = await lstat(folder.at(name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (before === undefined) return undefined;
  if (before.isSymbolicLink()) {
    throw new ForbiddenError('path_not_allowed', `${JSON.stringify(path)} is a link, and links are not followed`);
  }
  if (!before.isFile()) throw new InvalidError('invalid_request', `${JSON.stringify(path)} is no regular file`);
  return before.mode & 0o777;
};

/** Writes beside the file and puts it in its place in one step: nobody sees half of it, and no link is ever written through. */
const replaceFile = async (folder: OpenFolder, name: string, bytes: Buffer, mode: number): Promise<void> => {
  const unfinished = folder.at(`.beeuni-${randomBytes(8).toString('hex')}`);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(unfinished, flags, mode);
  try {
    await file.writeFile(bytes);
    await file.chmod(mode);
    await file.sync();
    await rename(unfinished, folder.at(name));
  } catch (error) {
    await unlink(unfinished).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
};

/** The files below a folder. */
export const makeWorkspaceFiles = (root: string): WorkspaceFiles => ({
  read: async (path) => {
    const names = namesOf(path);
    const last = names.at(-1);
    if (last === undefined)
      return inFolder(root, [], path, async (folder) => ({ result: await listFolder(folder, '') }));
    return inFolder(root, names.slice(0, -1), path, async (folder) => {
      const opened = await openName(folder, last);
      if (opened === undefined) {
        throw new ForbiddenError('path_not_allowed', `${JSON.stringify(path)} is a link, and links are not followed`);
      }
      try {
        const shown = names.join('/');
        if (!(await opened.stat()).isDirectory()) return { result: await readOpened(opened, shown) };
        return { result: await listFolder({ self: `/proc/self/fd/${opened.fd}` }, shown) };
      } finally {
        await opened.close();
      }
    });
  },
  write: async (path, content) => {
    const names = namesOf(path);
    const last = names.at(-1);
    if (last === undefined) throw new InvalidError('invalid_request', 'query.path must name a file');
    if (names.some((name) => name.toLowerCase() === '.git')) {
      throw new ForbiddenError('path_not_allowed', 'what is in .git is left to git');
    }
    const bytes = bytesOf(content);
    return inFolder(root, names.slice(0, -1), path, async (folder) => {
      const before = await modeBefore(folder, last, path);
      await replaceFile(folder, last, bytes, before ?? 0o644);
      return { result: { path: names.join('/'), sizeBytes: bytes.length, created: before === undefined } };
    });
  },
});
