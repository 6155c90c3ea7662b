// An answer on a connection of our own: head and body leave in as few writes as they can, with a length or in chunks.
// Must not know what is answered. Source: RFC 9112.
import { EventEmitter } from 'node:events';
import type { ExchangeResponse } from './exchange.ts';
import { STATUS_CODES } from './node-http.ts';

/** The connection as its answer sees it. `date`: the value of that header now. */
export type DirectSink = Readonly<{
  write: (bytes: Buffer | string) => boolean;
  cork: () => void;
  uncork: () => void;
  /** The answer was handed over; `done` runs when it has left. */
  finish: (isLast: boolean, done: () => void) => void;
  destroy: () => void;
  /** Whether the connection ends with this answer, whatever the handler says. */
  isLast: () => boolean;
  date: () => string;
  keepAliveSeconds: number;
}>;

/** Bodies up to this size are copied behind their head, or into their chunk. Units: bytes. */
const MAX_COPIED_BYTES = 65_536;
const HEADER = /^[\t\x20-\x7e]*$/;
const LAST_CHUNK = '0\r\n\r\n';

const bytesOf = (chunk: Buffer | string): Buffer => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk);

/** One answer. */
export class DirectResponse extends EventEmitter implements ExchangeResponse {
  readonly #sink: DirectSink;
  statusCode = 200;
  headersSent = false;
  destroyed = false;
  writableFinished = false;
  /** The head as long as it has not left. */
  #head = '';
  #hasLength = false;
  #isLast = false;
  #isEnded = false;

  constructor(sink: DirectSink) {
    super();
    this.#sink = sink;
  }

  writeHead(status: number, headers: Readonly<Record<string, string | number>> | string[]): void {
    if (this.headersSent) throw new Error('the head of the answer was sent already');
    const list = Array.isArray(headers) ? headers : Object.entries(headers).flat();
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Answer'}\r\n`;
    for (let at = 0; at < list.length; at += 2) {
      const name = list[at];
      const value = list[at + 1];
      if (typeof value === 'string' && !HEADER.test(value)) throw new Error(`the header ${name} cannot be sent`);
      if (name === 'content-length') this.#hasLength = true;
      if (name === 'connection') this.#isLast = value === 'close';
      else head += `${name}: ${value}\r\n`;
    }
    this.#isLast ||= this.#sink.isLast();
    const kept = this.#isLast ? 'close' : `keep-alive\r\nkeep-alive: timeout=${this.#sink.keepAliveSeconds}`;
    const length = this.#hasLength ? '' : 'transfer-encoding: chunked\r\n';
    this.#head = `${head}date: ${this.#sink.date()}\r\n${length}connection: ${kept}\r\n\r\n`;
    this.statusCode = status;
    this.headersSent = true;
  }

  write(chunk: Buffer | string): boolean {
    if (!this.headersSent || this.#isEnded) throw new Error('nothing can be written now');
    if (this.destroyed) return false;
    const bytes = bytesOf(chunk);
    return bytes.length === 0 ? true : this.#send(bytes, '');
  }

  end(chunk?: Buffer | string): void {
    if (!this.headersSent || this.#isEnded) throw new Error('the answer cannot be ended now');
    this.#isEnded = true;
    if (this.destroyed) return;
    this.#send(chunk === undefined ? undefined : bytesOf(chunk), this.#hasLength ? '' : LAST_CHUNK);
    this.#sink.finish(this.#isLast, () => {
      this.writableFinished = true;
      this.emit('close');
    });
  }

  destroy(): void {
    this.#sink.destroy();
  }

  /** The client has left. */
  abandon(): void {
    if (this.destroyed || this.writableFinished) return;
    this.destroyed = true;
    this.emit('close');
  }

  /** Sends what is left of the head, a piece of the body, and what comes behind it. */
  #send(body: Buffer | undefined, behind: string): boolean {
    const isPiece = body !== undefined && body.length > 0;
    const before = isPiece && !this.#hasLength ? `${this.#head}${body.length.toString(16)}\r\n` : this.#head;
    const after = isPiece && !this.#hasLength ? `\r\n${behind}` : behind;
    this.#head = '';
    if (!isPiece) return before === '' && after === '' ? true : this.#sink.write(before + after);
    if (body.length <= MAX_COPIED_BYTES) {
      const whole = Buffer.allocUnsafe(before.length + body.length + after.length);
      whole.write(before, 0, 'latin1');
      body.copy(whole, before.length);
      if (after !== '') whole.write(after, before.length + body.length, 'latin1');
      return this.#sink.write(whole);
    }
    this.#sink.cork();
    if (before !== '') this.#sink.write(before);
    const isKept = this.#sink.write(body);
    if (after !== '') this.#sink.write(after);
    this.#sink.uncork();
    return isKept;
  }
}
