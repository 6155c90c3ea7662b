// Hides the key of a call in what its provider answers, so that no echo of it reaches a sandbox. In place and of the same
// length, so that no length and no line changes. It helps against a provider that repeats what it was sent, not against one
// that encodes the key. Must not know any API. Source: 20-control-plane §4, faults FF11.

/** A shorter "key" is what is typed for an endpoint without keys, such as `none`, and a word of answers. */
const MIN_KEY_BYTES = 16;
const STAR = 0x2a;

/** Hides one key in the chunks of one answer, which it may change. */
export type KeyMask = Readonly<{
  /** What may leave now; a tail that may begin the key is kept for the next chunk. */
  push: (chunk: Buffer) => Buffer;
  /** The tail, when nothing follows. */
  flush: () => Buffer;
}>;

/** Makes the mask of one answer: for the key of its call, or for none. */
export type MaskOf = (key: Readonly<{ secret: string }> | undefined) => KeyMask;

const NOTHING = Buffer.alloc(0);
const NO_KEY: KeyMask = { push: (chunk) => chunk, flush: () => NOTHING };

/** Where the tail begins that may begin the key; the length when there is none. */
const tailStart = (bytes: Buffer, key: Buffer): number => {
  const { length } = bytes;
  const first = key[0];
  // Byte by byte: to ask for the place of one byte costs more than to look at so few.
  for (let at = Math.max(0, length - key.length + 1); at < length; at += 1) {
    if (bytes[at] === first && bytes.compare(key, 0, length - at, at) === 0) return at;
  }
  return length;
};

/** A class, as there is one for every call. */
class Mask implements KeyMask {
  readonly #key: Buffer;
  #held: Buffer = NOTHING;

  constructor(key: Buffer) {
    this.#key = key;
  }

  push(chunk: Buffer): Buffer {
    const key = this.#key;
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    let at = bytes.indexOf(key);
    while (at >= 0) {
      bytes.fill(STAR, at, at + key.length);
      at = bytes.indexOf(key, at + key.length);
    }
    const end = tailStart(bytes, key);
    if (end === bytes.length) {
      this.#held = NOTHING;
      return bytes;
    }
    this.#held = bytes.subarray(end);
    return bytes.subarray(0, end);
  }

  flush(): Buffer {
    const rest = this.#held;
    this.#held = NOTHING;
    return rest;
  }
}

/** Makes masks; they do nothing without a key, or for one below 16 bytes. The bytes of a key are made once. */
export const makeKeyMasks = (): MaskOf => {
  const known = new WeakMap<Readonly<{ secret: string }>, Buffer>();
  return (key) => {
    if (key === undefined || key.secret.length < MIN_KEY_BYTES) return NO_KEY;
    let bytes = known.get(key);
    if (bytes === undefined) {
      bytes = Buffer.from(key.secret, 'latin1');
      known.set(key, bytes);
    }
    return new Mask(bytes);
  };
};
