// Reads a request body into memory up to a limit, or says that it is too large. Must not know what is in it.
import type { Readable } from 'node:stream';

/** The whole body; undefined when it is above `maxBytes`, and then the rest is not read. Rejects when the sender leaves. */
export const readBounded = async (stream: Readable, maxBytes: number): Promise<Buffer | undefined> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBytes) return undefined;
    parts.push(part);
  }
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, bytes);
};
