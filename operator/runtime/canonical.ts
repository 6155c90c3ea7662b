// One text and one hash for one JSON value, whatever the order of its keys. Pure: no module of Node, so that plans may hash.
// Must not know what is hashed.

/** JSON with sorted keys; fields that are undefined are left out. Equal values give equal texts. Source: K26. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`);
    return `{${fields.join(',')}}`;
  }
  return JSON.stringify(value ?? null);
};

/** Whether two JSON values say the same, whatever the order of their keys. */
export const sameJson = (a: unknown, b: unknown): boolean => a === b || canonicalJson(a) === canonicalJson(b);

const ROUND_WORDS = 64;
const PRIMES = firstPrimes(ROUND_WORDS);
const ROUND_CONSTANTS = Uint32Array.from(PRIMES, (prime) => fraction32(Math.cbrt(prime)));
const INITIAL = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fraction32(Math.sqrt(prime)));

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n += 1) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}

/** The first 32 bits behind the point; exact for the roots of small primes (checked by the test vectors). */
function fraction32(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32);
}

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

const padded = (bytes: Uint8Array): DataView => {
  const blocks = Math.ceil((bytes.length + 9) / 64);
  const result = new Uint8Array(blocks * 64);
  result.set(bytes);
  result[bytes.length] = 0x80;
  const view = new DataView(result.buffer);
  view.setUint32(result.length - 8, Math.floor((bytes.length * 8) / 2 ** 32));
  view.setUint32(result.length - 4, (bytes.length * 8) >>> 0);
  return view;
};

/** SHA-256 of the UTF-8 bytes of a text (FIPS 180-4): 64 digits of lower-case hex. */
export const sha256Hex = (text: string): string => {
  const view = padded(new TextEncoder().encode(text));
  const state = Uint32Array.from(INITIAL);
  const words = new Uint32Array(ROUND_WORDS);
  const word = (at: number): number => words[at] as number;
  for (let offset = 0; offset < view.byteLength; offset += 64) {
    for (let t = 0; t < 16; t += 1) words[t] = view.getUint32(offset + t * 4);
    for (let t = 16; t < ROUND_WORDS; t += 1) {
      const a = word(t - 15);
      const b = word(t - 2);
      const small0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
      const small1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
      words[t] = small1 + word(t - 7) + small0 + word(t - 16);
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
    for (let t = 0; t < ROUND_WORDS; t += 1) {
      const big1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const first = (h + big1 + ((e & f) ^ (~e & g)) + (ROUND_CONSTANTS[t] as number) + word(t)) | 0;
      const big0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const second = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, at) => {
      state[at] = (state[at] as number) + value;
    });
  }
  return Array.from(state, (value) => value.toString(16).padStart(8, '0')).join('');
};

/** First 16 hex digits of the SHA-256 of the canonical JSON of a value. Source: K26. */
export const shortHash = (value: unknown): string => sha256Hex(canonicalJson(value)).slice(0, 16);
