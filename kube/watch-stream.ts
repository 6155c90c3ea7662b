// Bytes of a watch to events. Every ERROR object and every line that is not JSON ends the stream with its reason.
// Pure: must not know connections or caches.
import { KubeError, kubeErrorFromStatus } from './errors.ts';
import type { KubeObject } from './resource-types.ts';

/** One event of a watch. A bookmark carries a resource version and nothing else. */
export type WatchEvent = Readonly<{ type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; object: KubeObject }>;

/** Longest line; the server refuses objects above about 1.5 MiB. Units: bytes. */
const MAX_LINE_BYTES = 8 * 2 ** 20;
const NEWLINE = 0x0a;

const unreadable = (what: string): KubeError => new KubeError(0, 'UnreadableWatch', what);

const parseLine = (line: string): WatchEvent => {
  let event: { type?: unknown; object?: unknown };
  try {
    event = JSON.parse(line) as typeof event;
  } catch {
    throw unreadable('a line of a watch is not JSON');
  }
  const { type, object } = event;
  if (type === 'ERROR') throw kubeErrorFromStatus(500, object);
  const isEvent = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK';
  if (!isEvent || typeof object !== 'object' || object === null || !('metadata' in object)) {
    throw unreadable('a line of a watch is not an event');
  }
  return { type, object: object as KubeObject };
};

/** The events in a stream of bytes, as they come. Errors: KubeError of an ERROR event (C5) or `UnreadableWatch`. */
export const readWatchEvents = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<WatchEvent, void> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of chunks) {
    let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
      const line = Buffer.concat([...rest, bytes.subarray(0, end)]).toString('utf8');
      rest = [];
      restBytes = 0;
      bytes = bytes.subarray(end + 1);
      if (line.trim() !== '') yield parseLine(line);
    }
    if (bytes.length === 0) continue;
    rest.push(bytes);
    restBytes += bytes.length;
    if (restBytes > MAX_LINE_BYTES) throw unreadable('a line of a watch is too long');
  }
  if (restBytes > 0) throw unreadable('a watch ended in the middle of a line');
};
