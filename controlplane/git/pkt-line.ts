// git's line format: four hex digits of length, then bytes; `0000` is a flush. Pure but for reading its input.
// Must not know what the lines say.

/** Longest line that git allows. Units: bytes, with its length. */
const MAX_LINE = 65_520;

/** One line with its length in front. Bounds: at most 65,516 bytes of content. */
export const pktLine = (content: string | Uint8Array): Buffer => {
  const bytes = typeof content === 'string' ? Buffer.from(content, 'utf8') : Buffer.from(content);
  return Buffer.concat([Buffer.from((bytes.length + 4).toString(16).padStart(4, '0')), bytes]);
};

/** The end of a section. */
export const FLUSH = Buffer.from('0000');

/** The input is not in git's line format, or ends inside it. */
export class PktLineError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'PktLineError';
  }
}

/** Lines of the first section, without their line feeds, and what follows the flush. */
export type Section = Readonly<{ lines: readonly Buffer[]; rest: AsyncIterable<Buffer> }>;

/**
 * Reads lines up to the first flush; an input that is empty has none. Errors: PktLineError for a wrong length, an input
 * that ends too early, or a section above `maxBytes`.
 */
export const readSection = async (input: AsyncIterable<Buffer>, maxBytes: number): Promise<Section> => {
  const iterator = input[Symbol.asyncIterator]();
  const lines: Buffer[] = [];
  let held: Buffer = Buffer.alloc(0);
  let read = 0;

  /** True when `count` bytes are held; false at a clean end. */
  const fill = async (count: number): Promise<boolean> => {
    while (held.length < count) {
      const next = await iterator.next();
      if (next.done === true) {
        if (held.length === 0 && lines.length === 0) return false;
        throw new PktLineError('the input ends inside a line');
      }
      held = held.length === 0 ? next.value : Buffer.concat([held, next.value]);
    }
    return true;
  };

  for (;;) {
    if (!(await fill(4))) break;
    const digits = held.subarray(0, 4).toString('latin1');
    if (!/^[0-9a-f]{4}$/i.test(digits)) throw new PktLineError('a line does not begin with its length');
    const length = Number.parseInt(digits, 16);
    if (length === 0) {
      held = held.subarray(4);
      break;
    }
    if (length < 4 || length > MAX_LINE) throw new PktLineError('a line has a length that git does not allow');
    read += length;
    if (read > maxBytes) throw new PktLineError('there are too many lines');
    await fill(length);
    const content = held.subarray(4, length);
    lines.push(content.at(-1) === 0x0a ? content.subarray(0, -1) : content);
    held = held.subarray(length);
  }

  const rest = async function* (): AsyncGenerator<Buffer> {
    if (held.length > 0) yield held;
    for (;;) {
      const next = await iterator.next();
      if (next.done === true) return;
      yield next.value;
    }
  };
  return { lines, rest: rest() };
};
