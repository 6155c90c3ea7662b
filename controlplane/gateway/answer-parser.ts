// Reads one HTTP/1.1 answer from the bytes of a connection, however they are cut. Strict: what two readers could understand
// differently is an error. Must not know sockets. Source: RFC 9112, faults FC10.
import { CR, type HeaderLines, isValueByte, LF, readHeaderLines } from '#base/http/header-lines.ts';

/** Headers of an answer. */
export type AnswerHeaders = Pick<HeaderLines, 'get'>;

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

const HEAD_END = Buffer.from('\r\n\r\n');
const VERSION = Buffer.from('HTTP/1.');
const ZERO = 0x30;
const SPACE = 0x20;
const EMPTY = Buffer.alloc(0);
const LENGTH = /^\d{1,15}$/;
const CHUNK = /^([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$/;

const wrong = (what: string): Error => new Error(`the provider does not answer in valid HTTP: ${what}`);

type State = 'head' | 'length' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailers' | 'until-close' | 'done';

/** Reads answers, one after the other. A class, as it is part of every connection. */
export class AnswerParser {
  readonly #events: AnswerEvents;
  #state: State = 'head';
  #carry: Buffer = EMPTY;
  #left = 0;
  #trailerBytes = 0;
  #isKeptAlive = true;

  constructor(events: AnswerEvents) {
    this.#events = events;
  }

  /** Begins the next answer. */
  reset(): void {
    this.#state = 'head';
    this.#carry = EMPTY;
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
    const reasonEnd = endOfStatus(seen);
    // What came in pieces is read again only when its end is there.
    const isThere = seen === bytes || seen.includes(HEAD_END);
    const headers = reasonEnd < 0 || !isThere ? 'incomplete' : readHeaderLines(seen, reasonEnd);
    if (headers === 'incomplete') {
      if (seen.length > MAX_HEAD_BYTES) throw wrong('its head is too large');
      this.#carry = seen;
      return EMPTY;
    }
    if (headers === 'wrong') throw wrong('a header');
    if (headers.end > MAX_HEAD_BYTES) throw wrong('its head is too large');
    this.#carry = EMPTY;
    const rest = seen.subarray(headers.end);
    const status = digitAt(seen, 9) * 100 + digitAt(seen, 10) * 10 + digitAt(seen, 11);
    if (status === 101) throw wrong('it changes the protocol');
    if (status < 200) return rest;
    this.#begin(status, headers, seen[7] === ZERO + 1, rest.length === 0);
    return rest;
  }

  #begin(status: number, headers: HeaderLines, isNew: boolean, isAll: boolean): void {
    const connection = headers.get('connection')?.toLowerCase() ?? '';
    this.#isKeptAlive = !connection.includes('close') && (isNew || connection.includes('keep-alive'));
    const encoding = headers.get('transfer-encoding')?.toLowerCase();
    const length = headers.get('content-length');
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
    this.#carry = EMPTY;
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

const digitAt = (bytes: Buffer, at: number): number => (bytes[at] ?? 0) - ZERO;
const isDigit = (bytes: Buffer, at: number): boolean => digitAt(bytes, at) >= 0 && digitAt(bytes, at) <= 9;

/** Index behind the first line of an answer; -1 when it has not arrived. Throws when it is none. */
const endOfStatus = (bytes: Buffer): number => {
  for (let at = 0; at < VERSION.length && at < bytes.length; at += 1) {
    if (bytes[at] !== VERSION[at]) throw wrong('its first line');
  }
  if (bytes.length < 13) return -1;
  const isStatus =
    (bytes[7] === ZERO || bytes[7] === ZERO + 1) &&
    bytes[8] === SPACE &&
    isDigit(bytes, 9) &&
    isDigit(bytes, 10) &&
    isDigit(bytes, 11) &&
    (bytes[12] === SPACE || bytes[12] === CR);
  if (!isStatus) throw wrong('its first line');
  let at = 12;
  while (at < bytes.length && isValueByte(bytes[at] ?? 0)) at += 1;
  if (at + 1 >= bytes.length) return -1;
  if (bytes[at] !== CR || bytes[at + 1] !== LF) throw wrong('its first line');
  return at + 2;
};
