// Message ids that sort where they belong in OpenCode's session; an id made up otherwise corrupts its order.
// Must not know what is sent. Source: harness-runtimes §2.4.

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PER_MILLISECOND = 4096;

/** Makes ids: `msg_`, 12 hex digits of (milliseconds × 4096 + counter, low 48 bits), 14 letters or digits of chance. */
export const messageIds = (nowMs: () => number, random: () => number): (() => string) => {
  let lastMs = 0;
  let counter = 0;
  return () => {
    const now = Math.max(nowMs(), lastMs);
    counter = now === lastMs ? counter + 1 : 1;
    lastMs = now;
    const order = (BigInt(now) * BigInt(PER_MILLISECOND) + BigInt(counter)) & 0xffff_ffff_ffffn;
    let tail = '';
    for (let at = 0; at < 14; at += 1) tail += ALPHABET[Math.floor(random() * ALPHABET.length)] ?? '0';
    return `msg_${order.toString(16).padStart(12, '0')}${tail}`;
  };
};
