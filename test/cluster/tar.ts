// The little of the tar format that container images need: write regular files, list entries. Knows nothing of images.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

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

/** Content of the named small files of an uncompressed archive, read without the large ones between. Names that are missing are missing in the map. */
export function readTarFiles(archivePath: string, names: readonly string[]): Map<string, Buffer> {
  const file = openSync(archivePath, 'r');
  try {
    const found = new Map<string, Buffer>();
    const endBytes = fstatSync(file).size;
    const header = Buffer.alloc(blockBytes);
    for (let at = 0; at + blockBytes <= endBytes && found.size < names.length; ) {
      readSync(file, header, 0, blockBytes, at);
      if (header[0] === 0) break;
      const name = header.toString('utf8', 0, 100).replace(/\0.*$/s, '');
      const sizeBytes = Number.parseInt(header.toString('latin1', 124, 136), 8);
      if (!Number.isSafeInteger(sizeBytes)) throw new Error(`${archivePath} is not a plain tar archive`);
      if (names.includes(name)) {
        const content = Buffer.alloc(sizeBytes);
        readSync(file, content, 0, sizeBytes, at + blockBytes);
        found.set(name, content);
      }
      at += blockBytes + Math.ceil(sizeBytes / blockBytes) * blockBytes;
    }
    return found;
  } finally {
    closeSync(file);
  }
}
