// The little of the tar format that container images need: write regular files, list entries. Knows nothing of images.
import { closeSync, createReadStream, createWriteStream, fstatSync, openSync, readSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';

const blockBytes = 512;

/** Header block of one regular file, owned by root, with a fixed time, so that equal content gives equal bytes. Bounds: name up to 100 bytes. */
export function tarHeader(name: string, sizeBytes: number, mode: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new Error(`tar: name ${name} is longer than 100 bytes`);
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, width: number): void => {
    header.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at);
  };
  header.write(name, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(sizeBytes, 124, 12);
  octal(0, 136, 12);
  header.write('        ', 148); // The sum counts its own field as spaces.
  header.write('0', 156);
  header.write('ustar\x0000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

/** Zero bytes that fill a file of this size up to whole blocks. */
export function tarPadding(sizeBytes: number): Buffer {
  return Buffer.alloc((blockBytes - (sizeBytes % blockBytes)) % blockBytes);
}

/** The two empty blocks that end an archive. */
export const tarEnd = Buffer.alloc(2 * blockBytes);

/** One file inside an archive on disk. */
export interface TarEntry {
  readonly sizeBytes: number;
  read(): Buffer;
  copyTo(path: string): Promise<void>;
}

/** Regular files of an uncompressed archive by name, found by hopping from header to header. Throws when it is no such archive. */
export function tarEntries(archivePath: string): Map<string, TarEntry> {
  const file = openSync(archivePath, 'r');
  try {
    const entries = new Map<string, TarEntry>();
    const endBytes = fstatSync(file).size;
    const header = Buffer.alloc(blockBytes);
    for (let at = 0; at + blockBytes <= endBytes; ) {
      readSync(file, header, 0, blockBytes, at);
      if (header[0] === 0) break;
      const name = header.toString('utf8', 0, 100).replace(/\0.*$/s, '');
      const sizeBytes = Number.parseInt(header.toString('latin1', 124, 136), 8);
      if (!Number.isSafeInteger(sizeBytes)) throw new Error(`${archivePath} is not a plain tar archive`);
      const start = at + blockBytes;
      // Type 0, or nothing in very old archives, is a regular file.
      if (header[156] === 0x30 || header[156] === 0) entries.set(name, entryOf(archivePath, start, sizeBytes));
      at = start + Math.ceil(sizeBytes / blockBytes) * blockBytes;
    }
    return entries;
  } finally {
    closeSync(file);
  }
}

function entryOf(archivePath: string, start: number, sizeBytes: number): TarEntry {
  return {
    sizeBytes,
    read() {
      const file = openSync(archivePath, 'r');
      try {
        const content = Buffer.alloc(sizeBytes);
        readSync(file, content, 0, sizeBytes, start);
        return content;
      } finally {
        closeSync(file);
      }
    },
    async copyTo(path) {
      await pipeline(createReadStream(archivePath, { start, end: start + sizeBytes - 1 }), createWriteStream(path));
    },
  };
}
