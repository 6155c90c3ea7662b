// Writes to a stream and waits where its reader is slow, so that a long log does not pile up in memory.
import { once } from 'node:events';
import type { Writable } from 'node:stream';

/** Resolves when the stream takes more. */
export const writeFully = async (stream: Writable, text: string): Promise<void> => {
  if (text !== '' && !stream.write(text)) await once(stream, 'drain');
};
