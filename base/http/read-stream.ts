// Reads an endless answer line by line: NDJSON values and server-sent events, with bounds. Must not know what they mean.
import { UnavailableError } from '#base/errors.ts';

/** Longest line that is read. Units: bytes. */
export const MAX_LINE_BYTES = 8_388_608;

/** One server-sent event as it was read; `data` is the text of its data lines. */
export type ReadSseFrame = Readonly<{ id: string | undefined; event: string; data: string }>;

const LINE_FEED = 0x0a;

/**
 * Lines of a byte stream without their line ends; a last line without an end is dropped, as it may be cut.
 * Throws UnavailableError `control_plane_unavailable` for a line above the bound.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let held = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      parts.push(chunk.subarray(start, end));
      const line = Buffer.concat(parts).toString('utf8');
      parts = [];
      held = 0;
      start = end + 1;
      yield line.endsWith('\r') ? line.slice(0, -1) : line;
    }
    if (start < chunk.length) {
      parts.push(chunk.subarray(start));
      held += chunk.length - start;
      if (held > maxLineBytes) {
        throw new UnavailableError('control_plane_unavailable', `a line of the stream is above ${maxLineBytes} bytes`);
      }
    }
  }
}

/** Server-sent events of a byte stream; comments are skipped. Throws as readLines does. */
export async function* readSse(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ReadSseFrame> {
  let id: string | undefined;
  let event = 'message';
  let data: string[] = [];
  for await (const line of readLines(chunks)) {
    if (line === '') {
      if (data.length > 0) yield { id, event, data: data.join('\n') };
      event = 'message';
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    if (colon === 0) continue;
    const field = colon === -1 ? line : line.slice(0, colon);
    const rest = colon === -1 ? '' : line.slice(colon + 1);
    const value = rest.startsWith(' ') ? rest.slice(1) : rest;
    if (field === 'id') id = value;
    else if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
  }
}
