// Finds the model name in the bytes of a chat-completions request, without parsing or copying the rest. Pure.
// It must not know models; whoever calls puts another name into the same place.

/** Where the value of the top-level key `model` is, its text, and the other top-level values that the gateway reads. */
export type RequestSpan = Readonly<{
  ok: true;
  model: string;
  /** Bytes of the value with its quotes: from `start` up to but not including `end`. */
  start: number;
  end: number;
  stream: boolean;
}>;

/** Why a body is refused. */
export type SpanProblem = Readonly<{ ok: false; message: string }>;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;

/** Deepest nesting that is let through. Source: 20-control-plane §2. */
const MAX_DEPTH = 64;

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

const refuse = (message: string): SpanProblem => ({ ok: false, message });

/** Index after the closing quote of the string that begins at `at`; -1 when it does not end. */
const endOfString = (bytes: Uint8Array, at: number): number => {
  let from = at + 1;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote < 0) return -1;
    let slashes = 0;
    while (bytes[quote - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    from = quote + 1;
  }
};

const decoder = new TextDecoder('utf-8', { fatal: true });

const textOf = (bytes: Uint8Array, start: number, end: number): string | undefined => {
  try {
    return JSON.parse(decoder.decode(bytes.subarray(start, end))) as string;
  } catch {
    return undefined;
  }
};

/** Index after the value that begins at `at`; -1 when it does not end or is nested too deeply. */
const endOfValue = (bytes: Uint8Array, at: number): number => {
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
      if (depth >= MAX_DEPTH) return -1;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      depth -= 1;
      if (depth === 0) return index + 1;
    }
    index += 1;
  }
  return -1;
};

const BROKEN = 'the body is not a JSON object, or is nested too deeply';

/**
 * The place of the model name. Refused: a body that is no JSON object as far as this reads it, a key that is there
 * twice, a model that is no text. What lies inside other values is the provider's to check.
 */
export const findModelSpan = (bytes: Uint8Array): RequestSpan | SpanProblem => {
  let at = 0;
  const skip = (): void => {
    while (isSpace(bytes[at])) at += 1;
  };
  const seen = new Set<string>();
  let found: Readonly<{ model: string; start: number; end: number }> | undefined;
  let stream = false;
  skip();
  if (bytes[at] !== OPEN_OBJECT) return refuse(BROKEN);
  at += 1;
  skip();
  if (bytes[at] === CLOSE_OBJECT) return refuse('the body names no model');
  for (;;) {
    skip();
    if (bytes[at] !== QUOTE) return refuse(BROKEN);
    const keyEnd = endOfString(bytes, at);
    const key = keyEnd < 0 ? undefined : textOf(bytes, at, keyEnd);
    if (key === undefined) return refuse(BROKEN);
    if (seen.has(key)) return refuse('a key of the body is there twice');
    seen.add(key);
    at = keyEnd;
    skip();
    if (bytes[at] !== COLON) return refuse(BROKEN);
    at += 1;
    skip();
    const end = endOfValue(bytes, at);
    if (end < 0) return refuse(BROKEN);
    if (key === 'model') {
      const model = bytes[at] === QUOTE ? textOf(bytes, at, end) : undefined;
      if (model === undefined) return refuse('the model of the body is not a text');
      found = { model, start: at, end };
    } else if (key === 'stream') {
      stream = end - at === 4 && bytes[at] === 0x74;
    }
    at = end;
    skip();
    if (bytes[at] === COMMA) {
      at += 1;
      continue;
    }
    if (bytes[at] !== CLOSE_OBJECT) return refuse(BROKEN);
    at += 1;
    skip();
    if (at !== bytes.length) return refuse(BROKEN);
    return found === undefined ? refuse('the body names no model') : { ok: true, ...found, stream };
  }
};

/** The body in three parts with another model name: what was before the value, the new value, what was after it. */
export const withModel = (bytes: Uint8Array, span: RequestSpan, model: string): readonly Uint8Array[] => [
  bytes.subarray(0, span.start),
  new TextEncoder().encode(JSON.stringify(model)),
  bytes.subarray(span.end),
];
