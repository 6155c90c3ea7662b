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

const NOTHING = Buffer.alloc(0);
const NO_KEY: KeyMask = { push: (chunk) => chunk, flush: () => NOTHING };

/** Where the tail begins that may begin the key; the length when there is none. */
const tailStart = (bytes: Buffer, key: Buffer): number => {
  const first = key[0] as number;
  let at = bytes.indexOf(first, Math.max(0, bytes.length - key.length + 1));
  while (at >= 0 && bytes.compare(key, 0, bytes.length - at, at) !== 0) at = bytes.indexOf(first, at + 1);
  return at < 0 ? bytes.length : at;
};

/** Makes the mask of one answer; it does nothing without a key, or for one below 16 bytes. */
export const makeKeyMask = (secret: string | undefined): KeyMask => {
  if (secret === undefined || secret.length < MIN_KEY_BYTES) return NO_KEY;
  const key = Buffer.from(secret, 'latin1');
  let held: Buffer = NOTHING;
  return {
    push: (chunk) => {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      let at = bytes.indexOf(key);
      while (at >= 0) {
        bytes.fill(STAR, at, at + key.length);
        at = bytes.indexOf(key, at + key.length);
      }
      const end = tailStart(bytes, key);
      held = end === bytes.length ? NOTHING : bytes.subarray(end);
      return end === bytes.length ? bytes : bytes.subarray(0, end);
    },
    flush: () => {
      const rest = held;
      held = NOTHING;
      return rest;
    },
  };
};
