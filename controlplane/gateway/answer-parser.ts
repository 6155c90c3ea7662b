// Reads one HTTP/1.1 answer from the bytes of a connection, however they are cut. Strict: what two readers could understand
// differently is an error. Must not know sockets. Source: RFC 9112, faults FC10.

/** Headers by lower-case name; of a name that came twice the last value counts, but for those that must not. */
export type AnswerHeaders = Readonly<Record<string, string>>;

/** What happens while an answer is read. An error is thrown by `push` and `close`. */
export type AnswerEvents = Readonly<{
  /** The head of the final answer; informational ones are skipped. */
  onHead: (status: number, headers: AnswerHeaders) => void;
  /** A piece of the body, as it lies in what was pushed. */
  onBody: (piece: Buffer) => void;
  /** The answer is complete. `isReusable`: the connection may carry another one. */
  onEnd: (isReusable: boolean) => void;
}>;

const MAX_HEAD_BYTES = 65_536;
/** Longest line of a chunk's size, and all trailers together. Units: bytes. */
const MAX_LINE_BYTES = 4_096;
const MAX_TRAILER_BYTES = 16_384;

const STATUS = /^HTTP\/1\.([01]) (\d{3})(?: |$)/;
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/;
const LENGTH = /^\d{1,15}$/;
const CHUNK = /^([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$/;
/** What a header may hold: visible characters, blanks, and bytes above ASCII. */
const ALLOWED = /^[\t\x20-\x7e\x80-\xff]*$/;

const wrong = (what: string): Error => new Error(`the provider does not answer in valid HTTP: ${what}`);

type State = 'head' | 'length' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailers' | 'until-close' | 'done';

/** Reads answers, one after the other. A class, as it is part of every connection. */
export class AnswerParser {
  readonly #events: AnswerEvents;
  #state: State = 'head';
  #carry: Buffer = Buffer.alloc(0);
  #left = 0;
  #trailerBytes = 0;
  #isKeptAlive = true;

  constructor(events: AnswerEvents) {
    this.#events = events;
  }

  /** Begins the next answer. */
  reset(): void {
    this.#state = 'head';
    this.#carry = Buffer.alloc(0);
    this.#isKeptAlive = true;
  }

  /** Reads bytes. Throws for what is no valid answer, and for bytes behind its end. */
  push(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      switch (this.#state) {
        case 'head':
          rest = this.#head(rest);
          break;
        case 'length':
        case 'chunk-data': {
          const piece = rest.length <= this.#left ? rest : rest.subarray(0, this.#left);
          rest = rest.subarray(piece.length);
          this.#left -= piece.length;
          const isLast = this.#left === 0;
          const isChunk = this.#state === 'chunk-data';
          if (isLast && isChunk) this.#state = 'chunk-end';
          this.#events.onBody(piece);
          if (isLast && !isChunk) this.#end(rest.length === 0);
          break;
        }
        case 'until-close':
          this.#events.onBody(rest);
          return;
        case 'chunk-size':
        case 'chunk-end':
        case 'trailers': {
          // The end of a chunk is hardly ever cut.
          if (this.#state === 'chunk-end' && this.#carry.length === 0 && rest[0] === 0x0d && rest[1] === 0x0a) {
            this.#state = 'chunk-size';
            rest = rest.subarray(2);
            break;
          }
          const line = this.#line(rest);
          if (line === undefined) return;
          rest = line.rest;
          this.#control(line.text, rest.length === 0);
          break;
        }
        case 'done':
          throw wrong('there are bytes behind the answer');
      }
    }
  }

  /** The connection has ended. Throws when the answer is not complete. */
  close(): void {
    if (this.#state === 'until-close') this.#end(true);
    else if (this.#state !== 'done') throw wrong('the connection ended before the answer was complete');
  }

  #end(isClean: boolean): void {
    this.#state = 'done';
    this.#events.onEnd(this.#isKeptAlive && isClean);
  }

  #head(bytes: Buffer): Buffer {
    const seen = this.#carry.length === 0 ? bytes : Buffer.concat([this.#carry, bytes]);
    const end = seen.indexOf('\r\n\r\n');
    if (end < 0 || end > MAX_HEAD_BYTES) {
      if (seen.length > MAX_HEAD_BYTES) throw wrong('its head is too large');
      this.#carry = seen;
      return Buffer.alloc(0);
    }
    this.#carry = Buffer.alloc(0);
    const rest = seen.subarray(end + 4);
    const [first = '', ...lines] = seen.toString('latin1', 0, end).split('\r\n');
    const [, minor, code] = STATUS.exec(first) ?? [];
    if (code === undefined) throw wrong('its first line');
    const status = Number(code);
    const headers = readHeaders(lines);
    if (status === 101) throw wrong('it changes the protocol');
    if (status < 200) return rest;
    this.#begin(status, headers, minor === '1', rest.length === 0);
    return rest;
  }

  #begin(status: number, headers: AnswerHeaders, isNew: boolean, isAll: boolean): void {
    const connection = headers['connection']?.toLowerCase() ?? '';
    this.#isKeptAlive = isNew ? !connection.includes('close') : connection.includes('keep-alive');
    const encoding = headers['transfer-encoding']?.toLowerCase();
    const length = headers['content-length'];
    if (encoding !== undefined && (encoding !== 'chunked' || length !== undefined))
      throw wrong('its transfer encoding');
    if (length !== undefined && !LENGTH.test(length)) throw wrong('its length');
    const isEmpty = status === 204 || status === 304 || (encoding === undefined && Number(length) === 0);
    if (isEmpty) this.#state = 'done';
    else if (encoding !== undefined) this.#state = 'chunk-size';
    else if (length !== undefined) this.#state = 'length';
    else this.#state = 'until-close';
    this.#left = Number(length ?? 0);
    this.#trailerBytes = 0;
    if (this.#state === 'until-close') this.#isKeptAlive = false;
    this.#events.onHead(status, headers);
    if (isEmpty) this.#end(isAll);
  }

  /** The next line without its end; undefined when it has not arrived. */
  #line(bytes: Buffer): Readonly<{ text: string; rest: Buffer }> | undefined {
    const at = bytes.indexOf(0x0a);
    if (this.#carry.length + (at < 0 ? bytes.length : at) > MAX_LINE_BYTES) throw wrong('a line is too long');
    if (at < 0) {
      this.#carry = Buffer.concat([this.#carry, bytes]);
      return undefined;
    }
    const line = this.#carry.length === 0 ? bytes.subarray(0, at) : Buffer.concat([this.#carry, bytes.subarray(0, at)]);
    this.#carry = Buffer.alloc(0);
    if (line[line.length - 1] !== 0x0d) throw wrong('a line does not end as it should');
    return { text: line.toString('latin1', 0, line.length - 1), rest: bytes.subarray(at + 1) };
  }

  #control(line: string, isLast: boolean): void {
    if (this.#state === 'chunk-end') {
      if (line !== '') throw wrong('a chunk is longer than it says');
      this.#state = 'chunk-size';
    } else if (this.#state === 'chunk-size') {
      const size = CHUNK.exec(line)?.[1];
      if (size === undefined) throw wrong('the size of a chunk');
      this.#left = Number.parseInt(size, 16);
      this.#state = this.#left === 0 ? 'trailers' : 'chunk-data';
    } else {
      this.#trailerBytes += line.length;
      if (this.#trailerBytes > MAX_TRAILER_BYTES) throw wrong('its trailers are too large');
      if (line === '') this.#end(isLast);
    }
  }
}

const ONCE: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding']);

const readHeaders = (lines: readonly string[]): AnswerHeaders => {
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined || value === undefined || !ALLOWED.test(value)) throw wrong('a header');
    const key = name.toLowerCase();
    if (ONCE.has(key) && headers[key] !== undefined) throw wrong(`the header ${key} is there twice`);
    headers[key] = value;
  }
  return headers;
};
