// Encrypts the few texts that are stored and must not be readable in a dump: AES-256-GCM under keys from a mounted file.
// Must not know what it seals or where the file is.
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import type { RandomBytes, Seal, Unseal } from '../app/ports.ts';

/** One key. `id`: the first 8 bytes of the key's SHA-256, so that a sealed text names its key. */
export type SealKey = Readonly<{ id: Buffer; key: Buffer }>;

const KEY_BYTES = 32;
/** Length of a key's id, which follows the format byte of a sealed text. Units: bytes. */
export const KEY_ID_BYTES = 8;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const FORMAT = 1;

/**
 * The keys of a key file: one per line, 32 bytes as base64 or 64 hex digits, the first one seals, all of them open, so
 * that a key is rotated by adding a line above. Empty lines and lines that start with # are skipped.
 * Throws a plain Error, without any key in it, for a file that holds no key or a damaged one.
 */
export const parseSealKeys = (text: string): readonly [SealKey, ...SealKey[]] => {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const keys = lines.map((line, at): SealKey => {
    const key = /^[0-9a-fA-F]{64}$/.test(line) ? Buffer.from(line, 'hex') : Buffer.from(line, 'base64');
    if (key.length !== KEY_BYTES) throw new Error(`key ${at + 1} of the key file is not 32 bytes in base64 or hex`);
    return { id: createHash('sha256').update(key).digest().subarray(0, KEY_ID_BYTES), key };
  });
  const [first, ...rest] = keys;
  if (first === undefined) throw new Error('the key file holds no key');
  return [first, ...rest];
};

/**
 * Seal and unseal under the given keys. Layout: format byte 1, key id (8), IV (12), tag (16), ciphertext; the context
 * is authenticated, so a sealed text that is moved to another row does not open.
 */
export const makeSeal = (
  keys: readonly [SealKey, ...SealKey[]],
  randomBytes: RandomBytes,
): Readonly<{ seal: Seal; unseal: Unseal }> => ({
  seal: (plain, context) => {
    const [{ id, key }] = keys;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
    const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.of(FORMAT), id, iv, cipher.getAuthTag(), body]);
  },
  unseal: (sealed, context) => {
    const head = 1 + KEY_ID_BYTES + IV_BYTES + TAG_BYTES;
    if (sealed.length < head || sealed[0] !== FORMAT) throw new Error('a sealed text has an unknown format');
    const id = sealed.subarray(1, 1 + KEY_ID_BYTES);
    const found = keys.find((entry) => entry.id.equals(id));
    if (found === undefined)
      throw new Error(`a text was sealed with a key that is not in the key file: ${id.toString('hex')}`);
    const iv = sealed.subarray(1 + KEY_ID_BYTES, 1 + KEY_ID_BYTES + IV_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', found.key, iv)
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(head - TAG_BYTES, head));
    return Buffer.concat([decipher.update(sealed.subarray(head)), decipher.final()]).toString('utf8');
  },
});
