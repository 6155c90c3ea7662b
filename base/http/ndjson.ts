// Newline-delimited JSON: one value a line, without end. Must not know what the values mean.
import type { StreamWriter } from './stream-writer.ts';

/** The writer of an NDJSON answer; `send` is false once the stream ended. See StreamWriter for the rest. */
export type NdjsonWriter<T> = Readonly<{ send: (value: T) => boolean }> & Omit<StreamWriter, 'write'>;

/** Head of an NDJSON answer. */
export const NDJSON_HEADERS = {
  'content-type': 'application/x-ndjson; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
} as const;

/** An empty line: readers skip it, so a route whose frames have a heartbeat of their own needs nothing else. */
export const ndjsonHeartbeat = (): string => '\n';

/** Gives a stream the words of NDJSON. */
export const ndjsonWriter = <T>(writer: StreamWriter): NdjsonWriter<T> => ({
  send: (value) => writer.write(`${JSON.stringify(value)}\n`),
  drained: writer.drained,
  drop: writer.drop,
  signal: writer.signal,
  ended: writer.ended,
});
