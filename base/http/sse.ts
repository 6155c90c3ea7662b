// Server-sent events: the frames, and the writer that handlers of `stream: 'sse'` routes are given.
// Must not know what the events mean.
import type { StreamWriter } from './stream-writer.ts';

/** One frame. `id` is what a reader resumes with; `data` is sent as JSON. */
export type SseFrame = Readonly<{ id?: string | undefined; event?: string | undefined; data: unknown }>;

/**
 * The writer of an SSE answer; `send` is false once the stream ended. `write` takes frames that are text already, made
 * once for many readers. See StreamWriter for the rest.
 */
export type SseWriter = Readonly<{ send: (frame: SseFrame) => boolean }> & StreamWriter;

/** Head of an SSE answer; intermediaries are asked not to buffer or change it. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
} as const;

/** The comment that keeps a silent stream open. */
export const sseHeartbeat = (): string => ': heartbeat\n\n';

const oneLine = (name: string, value: string): string => {
  if (/[\r\n\0]/.test(value)) throw new TypeError(`the ${name} of an event holds a line break`);
  return value;
};

/** The text of one frame. Throws TypeError when id or event hold a line break. */
export const formatSseFrame = (frame: SseFrame): string => {
  const id = frame.id === undefined ? '' : `id: ${oneLine('id', frame.id)}\n`;
  const event = frame.event === undefined ? '' : `event: ${oneLine('name', frame.event)}\n`;
  return `${id}${event}data: ${JSON.stringify(frame.data)}\n\n`;
};

/** Gives a stream the words of SSE. */
export const sseWriter = (writer: StreamWriter): SseWriter => ({
  ...writer,
  send: (frame) => writer.write(formatSseFrame(frame)),
  write: writer.write,
});
