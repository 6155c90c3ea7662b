// Walks the bytes of a JSON object without parsing or copying them: where the value of each top-level key begins and
// ends. Pure. It must not know what any key means.

import { BACKSLASH, CLOSE_LIST, CLOSE_OBJECT, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } from '#base/json-bytes.ts';

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

const NEAR_BYTES = 32;

/** Index after the closing quote of the string that begins at `at`; -1 when it does not end. */
const endOfString = (bytes: Uint8Array, at: number): number => {
  let from = at + 1;
  // Most texts are short, and asking for the next quote costs more than to look at so many bytes.
  for (const near = Math.min(from + NEAR_BYTES, bytes.length); from < near; from += 1) {
    if (bytes[from] === QUOTE) return from + 1;
    if (bytes[from] === BACKSLASH) from += 1;
  }
  for (;;) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote < 0) return -1;
    let slashes = 0;
    while (bytes[quote - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    from = quote + 1;
  }
};

/** Index after the value that begins at `at`; -1 when it does not end or is nested too deeply. */
const endOfValue = (bytes: Uint8Array, at: number, maxDepth: number): number => {
  const first = bytes[at];
  if (first === QUOTE) return endOfString(bytes, at);
  if (first !== OPEN_OBJECT && first !== OPEN_LIST) {
    let end = at;
    while (end < bytes.length && bytes[end] !== COMMA && bytes[end] !== CLOSE_OBJECT && !isSpace(bytes[end])) end += 1;
    return end === at ? -1 : end;
  }
  let depth = 0;
  for (let index = at; index < bytes.length; ) {
    const byte = bytes[index];
    if (byte === QUOTE) {
      index = endOfString(bytes, index);
      if (index < 0) return -1;
      continue;
    }
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      depth += 1;
      if (depth >= maxDepth) return -1;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      depth -= 1;
      if (depth === 0) return index + 1;
    }
    index += 1;
  }
  return -1;
};

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Longest text that is read without a decoder. Units: bytes. */
const MAX_PLAIN_BYTES = 64;

/** The text of the JSON string between two places; undefined when it is none. Short plain ASCII needs no decoder. */
export const textAt = (bytes: Uint8Array, start: number, end: number): string | undefined => {
  if (bytes[start] !== QUOTE) return undefined;
  if (end - start <= MAX_PLAIN_BYTES && bytes[end - 1] === QUOTE && end - start > 1) {
    let text = '';
    let at = start + 1;
    for (; at < end - 1; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte === BACKSLASH || byte === QUOTE || byte < 0x20 || byte > 0x7e) break;
      text += String.fromCharCode(byte);
    }
    if (at === end - 1) return text;
  }
  try {
    return JSON.parse(decoder.decode(bytes.subarray(start, end))) as string;
  } catch {
    return undefined;
  }
};

/** Sees one member: its key, and its value from `start` up to but not including `end`. False ends the walk as broken. */
export type VisitMember = (key: string, start: number, end: number) => boolean;

/**
 * Visits every member of the object that the bytes are; true when they are one object and nothing else. What lies inside
 * values is not judged, only that brackets and quotes close and, with `maxDepth`, that they are not nested deeper.
 */
export const walkObject = (
  bytes: Uint8Array,
  visit: VisitMember,
  maxDepth: number = Number.POSITIVE_INFINITY,
): boolean => {
  let at = 0;
  const skip = (): void => {
    while (isSpace(bytes[at])) at += 1;
  };
  const isOver = (): boolean => {
    at += 1;
    skip();
    return at === bytes.length;
  };
  skip();
  if (bytes[at] !== OPEN_OBJECT) return false;
  at += 1;
  skip();
  if (bytes[at] === CLOSE_OBJECT) return isOver();
  for (;;) {
    skip();
    if (bytes[at] !== QUOTE) return false;
    const keyEnd = endOfString(bytes, at);
    const key = keyEnd < 0 ? undefined : textAt(bytes, at, keyEnd);
    if (key === undefined) return false;
    at = keyEnd;
    skip();
    if (bytes[at] !== COLON) return false;
    at += 1;
    skip();
    const end = endOfValue(bytes, at, maxDepth);
    if (end < 0 || !visit(key, at, end)) return false;
    at = end;
    skip();
    if (bytes[at] === CLOSE_OBJECT) return isOver();
    if (bytes[at] !== COMMA) return false;
    at += 1;
  }
};

/** Members of an object by key, as bytes. `isWhole`: the bytes are one object and nothing else. */
export type Members = Readonly<{ get: (key: string) => Uint8Array | undefined; isWhole: boolean }>;

/** The values of the named members; the last one counts when a key is there twice. */
export const membersOf = (bytes: Uint8Array, keys: readonly string[]): Members => {
  const found: (Uint8Array | undefined)[] = [];
  const isWhole = walkObject(bytes, (key, start, end) => {
    const at = keys.indexOf(key);
    if (at >= 0) found[at] = bytes.subarray(start, end);
    return true;
  });
  return { get: (key) => found[keys.indexOf(key)], isWhole };
};
