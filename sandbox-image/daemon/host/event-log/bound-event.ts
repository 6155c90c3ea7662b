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
