// Takes values that must not be seen out of a text: the secrets of this session, whatever they look like.
// Must not know what they are for. Source: FF11, 10-kubernetes §3 (lastTurn.summary).
import { redactText } from '#base/log.ts';

/** Values shorter than this are words, not secrets. Units: characters. */
const MIN_SECRET = 6;

/** A redactor whose values can be replaced. */
export type Redactor = Readonly<{ redact: (text: string) => string; replace: (values: readonly string[]) => void }>;

/** A redactor without values; what looks like a credential is taken out anyway. */
export const createRedactor = (): Redactor => {
  let secrets: readonly string[] = [];
  return {
    redact: (text) => {
      let result = text;
      for (const secret of secrets) result = result.replaceAll(secret, '[redacted]');
      return redactText(result);
    },
    replace: (values) => {
      secrets = values.filter((value) => value.length >= MIN_SECRET).sort((a, b) => b.length - a.length);
    },
  };
};
