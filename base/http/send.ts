// One call over HTTP by Node's own client: what our clients need of `fetch`, without what that costs a small process.
// Redirects are not followed, and only the caller's signal ends a slow answer. Must not know routes or who is called.
// Source: docs/decisions/0049.
import type { IncomingMessage, RequestOptions } from 'node:http';
import { urlToHttpOptions } from 'node:url';
import { makeWays } from './node-http.ts';

/** What is sent. */
export type Sent = Readonly<{
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** Ends the call, also while the answer is read. */
  signal?: AbortSignal;
}>;

/**
 * The head of an answer, and its body as it comes; whoever does not read the body to its end drops it. A `Response` of fetch
 * is one too.
 */
export type Answer = Readonly<{
  status: number;
  headers: Readonly<{ get: (name: string) => string | null }>;
  body: AsyncIterable<Uint8Array> | null;
}>;

/** Sends and gives back the answer, whatever its status. Rejects as the network fails, or with the signal's reason. */
export type Send = (url: string, sent: Sent) => Promise<Answer>;

/** Longest text that is read of an answer. Units: bytes. */
export const MAX_TEXT_BYTES = 16_777_216;

/** An idle connection is left alone before a server would close it under a request. Units: milliseconds. */
const IDLE_MS = 4_000;

const ways = makeWays({ keepAlive: true, timeout: IDLE_MS });

/** The answer by Node's client. */
const answerOf = (incoming: IncomingMessage): Answer => ({
  status: incoming.statusCode ?? 0,
  headers: {
    get: (name) => {
      const value = incoming.headers[name.toLowerCase()];
      return value === undefined ? null : [value].flat().join(', ');
    },
  },
  body: incoming,
});

/** Sends by Node's own client; connections are kept for a moment. */
export const send: Send = (address, sent) =>
  new Promise((resolve, reject) => {
    const url = new URL(address);
    const { method = 'GET', headers = {}, signal } = sent;
    const { agent, request } = ways.of(url.protocol);
    const options: RequestOptions = { method, headers, agent, ...(signal === undefined ? {} : { signal }) };
    const call = request({ ...urlToHttpOptions(url), ...options }, (incoming) => resolve(answerOf(incoming)));
    // After the head an error is one of the body, which its reader gets.
    call.on('error', (error) => reject(signal?.aborted === true ? signal.reason : error));
    call.end(sent.body);
  });

/** The whole body as text. Rejects with RangeError when it is longer, and as the network fails. */
export const readText = async ({ body }: Answer, limitBytes = MAX_TEXT_BYTES): Promise<string> => {
  if (body === null) return '';
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limitBytes) throw new RangeError(`the answer is above ${limitBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};
