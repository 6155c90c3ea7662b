// How the file tools open what a path names: regular files only, and never with a wait. A pipe that nobody writes to would
// hold one of the few threads that this whole process has for files and name look-ups, the daemon's included.
// Must not know Pi beyond the shape of its operations. Source: FF5, FF8, harness-runtimes §3.5.
import { constants } from 'node:fs';
import { access, type FileHandle, mkdir, open, readlink } from 'node:fs/promises';

/** A file that is read or edited as a whole. Units: bytes. */
const MAX_WHOLE_BYTES = 32 * 1024 * 1024;
const CHUNK_BYTES = 65_536;
const SNIFF_BYTES = 4_100;

/** Files of the kernel: in here they would be those of the daemon's own process. */
const KERNEL = /^\/(proc|sys)\//;

/** Opens a regular file. Rejects at once for everything else, with words for the model. */
const openRegular = async (path: string, flags: number): Promise<Readonly<{ file: FileHandle; bytes: number }>> => {
  let file: FileHandle;
  try {
    file = await open(path, flags | constants.O_NONBLOCK | constants.O_NOCTTY, 0o666);
  } catch (error) {
    // A pipe without a reader.
    if ((error as { code?: string }).code === 'ENXIO') throw new Error(`${path} is no regular file`);
    throw error;
  }
  try {
    const info = await file.stat();
    if (!info.isFile()) throw new Error(`${path} is no regular file`);
    if (KERNEL.test(await readlink(`/proc/self/fd/${file.fd}`))) {
      throw new Error(`${path} is a file of the kernel; look at it with bash`);
    }
    return { file, bytes: info.size };
  } catch (error) {
    await file.close();
    throw error;
  }
};

const readFile = async (path: string): Promise<Buffer> => {
  const { file, bytes } = await openRegular(path, constants.O_RDONLY);
  try {
    if (bytes > MAX_WHOLE_BYTES) throw new Error(`${path} has ${bytes} bytes, which is too much for this tool`);
    return await file.readFile();
  } finally {
    await file.close();
  }
};

const writeFile = async (path: string, content: string): Promise<void> => {
  // Not cut before it is known to be a file.
  const { file } = await openRegular(path, constants.O_WRONLY | constants.O_CREAT);
  try {
    await file.truncate(0);
    await file.writeFile(content, 'utf8');
  } finally {
    await file.close();
  }
};

/** The content up to the size that the file had when it was opened, so that a growing file ends too. */
async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
  const { file, bytes } = await openRegular(path, constants.O_RDONLY);
  try {
    for (let at = 0; at < bytes; ) {
      const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, bytes - at));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

const startsWith = (head: Buffer, ...bytes: readonly number[]): boolean => bytes.every((byte, at) => head[at] === byte);
const ascii = (head: Buffer, from: number, text: string): boolean =>
  head.toString('latin1', from, from + text.length) === text;

/** The type of an image that a model can look at, by its first bytes; null for anything else. */
export const imageTypeOf = (head: Buffer): string | null => {
  if (startsWith(head, 0xff, 0xd8, 0xff)) return 'image/jpeg';
  if (startsWith(head, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return 'image/png';
  if (ascii(head, 0, 'GIF87a') || ascii(head, 0, 'GIF89a')) return 'image/gif';
  return ascii(head, 0, 'RIFF') && ascii(head, 8, 'WEBP') ? 'image/webp' : null;
};

const detectImageMimeType = async (path: string): Promise<string | null> => {
  const { file } = await openRegular(path, constants.O_RDONLY);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SNIFF_BYTES), 0, SNIFF_BYTES, 0);
    return imageTypeOf(buffer.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
};

/** Operations of Pi's tool `read`. */
export const READ_OPERATIONS = {
  readFile,
  createReadStream: (path: string) => chunksOf(path),
  access: (path: string) => access(path, constants.R_OK),
  detectImageMimeType,
};

/** Operations of Pi's tool `edit`. */
export const EDIT_OPERATIONS = {
  readFile,
  writeFile,
  access: (path: string) => access(path, constants.R_OK | constants.W_OK),
};

/** Operations of Pi's tool `write`. */
export const WRITE_OPERATIONS = {
  writeFile,
  mkdir: async (folder: string): Promise<void> => {
    await mkdir(folder, { recursive: true });
  },
};
