// Makes the data of an event fit for the log: bounded in size, and text that every store can hold.
// Pure. Must not know what the event means.

/** Largest data of one event that the daemon sends. Units: characters of JSON. Below MAX_EVENT_BYTES with room for the envelope. */
export const MAX_DATA_CHARACTERS = 120_000;

const CUT = ' …[cut]';
const MAX_DEPTH = 24;

/** The text without NUL and lone surrogates, which JSON columns of Postgres refuse. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll('\u0000', '\uFFFD');

const bounded = (value: unknown, maxString: number, depth: number): unknown => {
  if (typeof value === 'string') {
    return storableText(value.length > maxString ? value.slice(0, maxString) + CUT : value);
  }
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? value.toString() : value;
  if (depth >= MAX_DEPTH) return '[deep]';
  if (Array.isArray(value)) return value.map((item) => bounded(item, maxString, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [storableText(key), bounded(inner, maxString, depth + 1)]),
  );
};

/** The data, whose long strings are cut until it fits; `{ cut: true }` for data that is large in some other way. */
export const boundData = (data: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  for (const maxString of [MAX_DATA_CHARACTERS, 32_768, 8_192, 1_024]) {
    const result = bounded(data, maxString, 0) as Record<string, unknown>;
    if (JSON.stringify(result).length <= MAX_DATA_CHARACTERS) return result;
  }
  return { cut: true };
};

/** NUL and lone surrogates as JSON writes them. */
const UNSTORABLE = /\\u0000|\\ud[89a-f]/i;

/** Whether nothing in the text can be nested too deep: that takes as many brackets. */
const isShallow = (json: string): boolean => {
  let brackets = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === 0x5b || code === 0x7b) brackets += 1;
  }
  return brackets <= MAX_DEPTH;
};

/** `boundData` as JSON text. What fits as it is, and nearly everything does, is written once. */
export const boundedJson = (data: Readonly<Record<string, unknown>>): string => {
  try {
    const json = JSON.stringify(data);
    if (json.length <= MAX_DATA_CHARACTERS && !UNSTORABLE.test(json) && isShallow(json)) return json;
  } catch {
    // A value that JSON does not know.
  }
  return JSON.stringify(boundData(data));
};
