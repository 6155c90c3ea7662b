// One request and its answer as the handlers of direct routes see them, whether Node's HTTP carries them or our own
// connection does. Must not know routes.
import type { IncomingMessage } from 'node:http';

/** A request. Names of headers are in lower case. */
export type ExchangeRequest = Readonly<{
  /** Values of a header that was sent more than once are joined, so that none of them is overlooked. */
  header: (name: string) => string | undefined;
  /** How many times a header was sent. */
  countOf: (name: string) => number;
  /** Whether the whole body has arrived; an answer before that ends the connection. */
  isComplete: () => boolean;
  /**
   * The whole body; undefined when it is above `maxBytes`, and then the rest is not read. At once when it is there. Rejects
   * when the sender leaves. To be called once.
   */
  readBody: (maxBytes: number) => Promise<Buffer | undefined> | Buffer | undefined;
}>;

/** An answer: what of Node's response a direct route may use. `write` is false when the client does not keep up. */
export type ExchangeResponse = Readonly<{
  statusCode: number;
  headersSent: boolean;
  destroyed: boolean;
  /** Everything that was written has left. */
  writableFinished: boolean;
  /** Headers by lower-case name, or a flat list of names and values. */
  writeHead: (status: number, headers: Readonly<Record<string, string | number>> | string[]) => unknown;
  write: (chunk: Buffer | string) => boolean;
  end: (chunk?: Buffer | string) => unknown;
  destroy: () => unknown;
  /** `close`: the answer has left, or the client has. */
  on: (event: 'close' | 'drain', listener: () => void) => unknown;
  off: (event: 'close' | 'drain', listener: () => void) => unknown;
}>;

const readBody = (stream: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> =>
  new Promise((resolve, reject) => {
    let parts: Buffer[] = [];
    let bytes = 0;
    const fail = (): void => reject(new Error('the request ended before its body was complete'));
    stream.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes <= maxBytes) {
        parts.push(part);
        return;
      }
      parts = [];
      stream.pause();
      resolve(undefined);
    });
    stream.on('end', () => {
      const [first] = parts;
      resolve(parts.length === 1 && first !== undefined ? first : Buffer.concat(parts));
    });
    stream.on('error', fail);
    stream.on('aborted', fail);
  });

const countIn = (raw: readonly string[], name: string): number => {
  let count = 0;
  for (let at = 0; at < raw.length; at += 2) if (raw[at]?.toLowerCase() === name) count += 1;
  return count;
};

/** A request of Node's HTTP. */
export const requestOf = (message: IncomingMessage): ExchangeRequest => ({
  header: (name) => message.headersDistinct[name]?.join(', '),
  countOf: (name) => countIn(message.rawHeaders, name),
  isComplete: () => message.complete,
  readBody: (maxBytes) => readBody(message, maxBytes),
});
