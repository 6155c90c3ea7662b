// Seals again what an older encryption key sealed, so that the older key can be taken away. Every text is exchanged only if
// it is still the one that was read, so the work may be repeated, run on every replica and end anywhere.
// Must not know SQL or where keys come from. Source: 20-control-plane §4.
import type { Logger } from '#base/log.ts';
import type { Seal, Unseal } from './ports.ts';

/** A stored text that another key than the active one sealed. `place` and `key` name it; `context` is what it is bound to. */
export type SealedText = Readonly<{ place: string; key: readonly string[]; context: string; sealed: Buffer }>;

/** The stored texts. Errors of all: UnavailableError `database_unavailable`. */
export type SealedTexts = Readonly<{
  places: readonly string[];
  /** Texts of a place that are not under the active key, after a key, in the order of keys. */
  older: (place: string, after: readonly string[] | undefined, limit: number) => Promise<readonly SealedText[]>;
  /** Exchanges the text; false when it is another one by now. */
  replace: (text: SealedText, sealed: Buffer) => Promise<boolean>;
}>;

/** What became of a pass. `unopened`: texts that no key of the key file opens. */
export type Resealed = Readonly<{ resealed: number; unopened: number }>;

/** What the work needs. */
export type ResealPorts = Readonly<{ texts: SealedTexts; seal: Seal; unseal: Unseal; log: Logger }>;

const PAGE = 100;

/** Makes one pass over all places. */
export const makeReseal =
  ({ texts, seal, unseal, log }: ResealPorts): (() => Promise<Resealed>) =>
  async () => {
    let resealed = 0;
    let unopened = 0;
    const one = async (text: SealedText): Promise<void> => {
      let plain: string;
      try {
        plain = unseal(text.sealed, text.context);
      } catch (error) {
        unopened += 1;
        log.error('a sealed text cannot be opened', { place: text.place, key: text.key.join('/'), err: error });
        return;
      }
      if (await texts.replace(text, seal(plain, text.context))) resealed += 1;
    };
    for (const place of texts.places) {
      let after: readonly string[] | undefined;
      for (;;) {
        const page = await texts.older(place, after, PAGE);
        for (const text of page) await one(text);
        after = page.at(-1)?.key;
        if (page.length < PAGE) break;
      }
    }
    if (resealed > 0) log.info('texts were sealed again with the active encryption key', { resealed });
    return { resealed, unopened };
  };
