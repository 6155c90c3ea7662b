// The newest bytes of a terminal, up to a limit. Pure but for what it keeps. Must not know what they mean. Source: A201.

/** The ring. `read` gives the bytes in order. */
export type Scrollback = Readonly<{ add: (bytes: Buffer) => void; read: () => Buffer }>;

/** Whether a byte begins a character or stands for itself. */
const isStart = (byte: number): boolean => (byte & 0xc0) !== 0x80;

/** An empty one. What is cut off at the front ends at a whole character. */
export const createScrollback = (limitBytes: number): Scrollback => {
  let chunks: Buffer[] = [];
  let size = 0;
  const read = (): Buffer => {
    const all = Buffer.concat(chunks);
    const kept = all.subarray(Math.max(0, all.length - limitBytes));
    let from = 0;
    if (kept.length < all.length) while (from < 4 && from < kept.length && !isStart(kept[from] ?? 0)) from += 1;
    return kept.subarray(from);
  };
  return {
    add: (bytes) => {
      chunks.push(bytes);
      size += bytes.length;
      if (size < limitBytes * 2) return;
      chunks = [read()];
      size = chunks[0]?.length ?? 0;
    },
    read,
  };
};
