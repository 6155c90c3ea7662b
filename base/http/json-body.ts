// Reads a JSON body that may be hostile: bounded depth, no `__proto__`, no key twice, valid UTF-8.
// Must not know routes or schemas. Source: 20-control-plane §2, FC9.
import { InvalidError } from '../errors.ts';
import {
  BACKSLASH,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COMMA,
  MAX_JSON_DEPTH,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
} from '../json-bytes.ts';

const refuse = (message: string): never => {
  throw new InvalidError('invalid_json', message);
};

/** Index of the quote that ends the string opened at `open`, or the length of the text when none does. */
const endOfString = (text: string, open: number): number => {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return text.length;
};

const decodeKey = (raw: string): string => {
  if (!raw.includes('\\')) return raw;
  try {
    return String(JSON.parse(`"${raw}"`));
  } catch {
    return raw;
  }
};

/**
 * Checks depth and keys in one pass, before anything is built from the text. Text that is not JSON passes here and is
 * refused by the parser after it. Throws InvalidError `invalid_json`.
 */
const checkShape = (text: string): void => {
  const keysOfOpen: (Set<string> | undefined)[] = [];
  let wantsKey = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      const keys = keysOfOpen.at(-1);
      if (wantsKey && keys !== undefined) {
        const key = decodeKey(text.slice(at + 1, end));
        if (key === '__proto__') refuse('the body holds the key __proto__, which is not allowed');
        if (keys.has(key)) refuse('the body holds the same key twice in one object');
        keys.add(key);
        wantsKey = false;
      }
      at = end;
    } else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      if (keysOfOpen.length >= MAX_JSON_DEPTH) refuse(`the body is nested deeper than ${MAX_JSON_DEPTH}`);
      wantsKey = code === OPEN_OBJECT;
      keysOfOpen.push(wantsKey ? new Set() : undefined);
    } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
      keysOfOpen.pop();
      wantsKey = false;
    } else if (code === COMMA) {
      wantsKey = keysOfOpen.at(-1) !== undefined;
    }
  }
};

/** The value of a JSON body. Throws InvalidError `invalid_json`, whose message says what is wrong, never the content. */
export const parseJsonBody = (bytes: Uint8Array): unknown => {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuse('the body is not valid UTF-8');
  }
  checkShape(text);
  try {
    return JSON.parse(text);
  } catch {
    return refuse('the body is not valid JSON');
  }
};
