// Reads the head of a request that a direct route may take: whole, strict and plain. Everything else is left to Node's
// parser, which also finds the words for what is wrong. Must not know routes. Source: RFC 9112, faults FC10.
import { CR, type HeaderLines, LF, readHeaderLines } from './header-lines.ts';

/** A head. `target`: method and path as they were sent, with one blank between. Units: bytes. */
export type RequestHead = Readonly<{ target: string; headers: HeaderLines; contentLength: number; isLast: boolean }>;

const VERSION = ' HTTP/1.1';
/** Longest first line that is looked at. Units: bytes. */
const MAX_LINE_BYTES = 256;
const LENGTH = /^\d{1,15}$/;
/** Headers that change how a request is read; with one of them it is not plain. */
const NOT_PLAIN = ['transfer-encoding', 'expect', 'upgrade', 'te', 'trailer', 'http2-settings', 'proxy-connection'];
/** Headers that two readers could take differently when they are there twice. */
const SINGLE = ['host', 'authorization', 'content-type', 'content-length'];

/**
 * The head at the beginning of the bytes; undefined when it is not whole, or not plain: another version, no host, a
 * header twice that must not be, chunks, any wish about the connection but to keep or to close it.
 */
export const readRequestHead = (bytes: Buffer, maxBytes: number): RequestHead | undefined => {
  const lineEnd = bytes.indexOf(CR);
  if (lineEnd < 0 || lineEnd > MAX_LINE_BYTES || bytes[lineEnd + 1] !== LF) return undefined;
  const line = bytes.toString('latin1', 0, lineEnd);
  if (!line.endsWith(VERSION)) return undefined;
  const headers = readHeaderLines(bytes, lineEnd + 2);
  if (typeof headers === 'string' || headers.end > maxBytes || headers.count('host') === 0) return undefined;
  for (const name of SINGLE) if (headers.count(name) > 1) return undefined;
  for (const name of NOT_PLAIN) if (headers.count(name) > 0) return undefined;
  const connection = headers.get('connection')?.toLowerCase() ?? 'keep-alive';
  if (connection !== 'keep-alive' && connection !== 'close') return undefined;
  const length = headers.get('content-length') ?? '0';
  if (!LENGTH.test(length)) return undefined;
  const target = line.slice(0, -VERSION.length);
  return { target, headers, contentLength: Number(length), isLast: connection === 'close' };
};
