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

/** Mixes one block into the state. Plain variables: this is the hot loop of every plan. */
const compress = (state: Uint32Array, words: Uint32Array): void => {
  let a = state[0] as number;
  let b = state[1] as number;
  let c = state[2] as number;
  let d = state[3] as number;
  let e = state[4] as number;
  let f = state[5] as number;
  let g = state[6] as number;
  let h = state[7] as number;
  for (let t = 0; t < ROUND_WORDS; t += 1) {
    const big1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const choice = (e & f) ^ (~e & g);
    const first = (h + big1 + choice + (ROUND_CONSTANTS[t] as number) + (words[t] as number)) | 0;
    const big0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + big0 + majority) | 0;
  }
  state[0] = (state[0] as number) + a;
  state[1] = (state[1] as number) + b;
  state[2] = (state[2] as number) + c;
  state[3] = (state[3] as number) + d;
  state[4] = (state[4] as number) + e;
  state[5] = (state[5] as number) + f;
  state[6] = (state[6] as number) + g;
  state[7] = (state[7] as number) + h;
};

/** SHA-256 of the UTF-8 bytes of a text (FIPS 180-4): 64 digits of lower-case hex. */
export const sha256Hex = (text: string): string => {
  const view = padded(new TextEncoder().encode(text));
  const state = Uint32Array.from(INITIAL);
  const words = new Uint32Array(ROUND_WORDS);
  for (let offset = 0; offset < view.byteLength; offset += 64) {
    for (let t = 0; t < 16; t += 1) words[t] = view.getUint32(offset + t * 4);
    for (let t = 16; t < ROUND_WORDS; t += 1) {
      const x = words[t - 15] as number;
      const y = words[t - 2] as number;
      const small0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const small1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[t] = small1 + (words[t - 7] as number) + small0 + (words[t - 16] as number);
    }
    compress(state, words);
  }
  return Array.from(state, (value) => value.toString(16).padStart(8, '0')).join('');
};

/** First 16 hex digits of the SHA-256 of the canonical JSON of a value. Source: K26. */
export const shortHash = (value: unknown): string => sha256Hex(canonicalJson(value)).slice(0, 16);
