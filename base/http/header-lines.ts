// Reads the header lines of an HTTP/1.1 head where they lie, without a text for each. Strict: what two readers could
// understand differently is no head. Must not know what any header means. Source: RFC 9112 §5, faults FC10.

/** Bytes of the line ends and of the colon. */
export const CR = 0x0d;
export const LF = 0x0a;
const COLON = 0x3a;
const TAB = 0x09;
const SPACE = 0x20;

const TOKEN = 1;
const VALUE = 2;

/** What each byte may be part of: a name, a value, both. */
const KINDS: Uint8Array = (() => {
  const kinds = new Uint8Array(256);
  for (let byte = 0; byte < 256; byte += 1) {
    const isName = /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(String.fromCharCode(byte));
    const isValue = byte === TAB || (byte >= SPACE && byte <= 0x7e) || byte >= 0x80;
    kinds[byte] = (isName ? TOKEN : 0) | (isValue ? VALUE : 0);
  }
  return kinds;
})();

/** Whether a byte may stand in the value of a header, or in the reason of an answer. */
export const isValueByte = (byte: number): boolean => ((KINDS[byte] ?? 0) & VALUE) !== 0;

/** What names of the same length and first letter share; most names differ in it. */
const keyOf = (length: number, firstByte: number): number => (length << 8) | (firstByte | 0x20);

/** Header lines. A class, as there is one for every request and answer. */
export class HeaderLines {
  readonly #bytes: Buffer;
  /** For each line: the key of its name, where the name begins, and where its value without blanks begins and ends. */
  readonly #places: readonly number[];
  /** Index behind the empty line. */
  readonly end: number;

  constructor(bytes: Buffer, places: readonly number[], end: number) {
    this.#bytes = bytes;
    this.#places = places;
    this.end = end;
  }

  /** Whether the rest of a name is that of `name`, whose key it has. */
  #isNamed(start: number, name: string): boolean {
    for (let index = 1; index < name.length; index += 1) {
      // Of all bytes of a name only the capital of a letter becomes that letter.
      if (((this.#bytes[start + index] ?? 0) | 0x20) !== name.charCodeAt(index)) return false;
    }
    return true;
  }

  /** The value by a name of lower-case letters, digits and dashes; values of a name that is there twice are joined. */
  get(name: string): string | undefined {
    const places = this.#places;
    const key = keyOf(name.length, name.charCodeAt(0));
    let value: string | undefined;
    for (let at = 0; at < places.length; at += 4) {
      if (places[at] !== key || !this.#isNamed(places[at + 1] ?? 0, name)) continue;
      const text = this.#bytes.toString('latin1', places[at + 2], places[at + 3]);
      value = value === undefined ? text : `${value}, ${text}`;
    }
    return value;
  }

  /** How many lines have the name. */
  count(name: string): number {
    const places = this.#places;
    const key = keyOf(name.length, name.charCodeAt(0));
    let count = 0;
    for (let at = 0; at < places.length; at += 4) {
      if (places[at] === key && this.#isNamed(places[at + 1] ?? 0, name)) count += 1;
    }
    return count;
  }
}

/** The lines from `start` on; `incomplete` when their end is not there yet, `wrong` when they are none. */
export const readHeaderLines = (bytes: Buffer, start: number): HeaderLines | 'incomplete' | 'wrong' => {
  const { length } = bytes;
  const places: number[] = [];
  let at = start;
  for (;;) {
    if (at >= length) return 'incomplete';
    if (bytes[at] === CR) {
      if (at + 1 >= length) return 'incomplete';
      return bytes[at + 1] === LF ? new HeaderLines(bytes, places, at + 2) : 'wrong';
    }
    const nameStart = at;
    while (at < length && ((KINDS[bytes[at] ?? 0] ?? 0) & TOKEN) !== 0) at += 1;
    if (at >= length) return 'incomplete';
    if (at === nameStart || bytes[at] !== COLON) return 'wrong';
    const nameEnd = at;
    at += 1;
    while (bytes[at] === SPACE || bytes[at] === TAB) at += 1;
    const valueStart = at;
    while (at < length && ((KINDS[bytes[at] ?? 0] ?? 0) & VALUE) !== 0) at += 1;
    if (at + 1 >= length) return 'incomplete';
    if (bytes[at] !== CR || bytes[at + 1] !== LF) return 'wrong';
    let valueEnd = at;
    while (valueEnd > valueStart && (bytes[valueEnd - 1] === SPACE || bytes[valueEnd - 1] === TAB)) valueEnd -= 1;
    places.push(keyOf(nameEnd - nameStart, bytes[nameStart] ?? 0), nameStart, valueStart, valueEnd);
    at += 2;
  }
};
