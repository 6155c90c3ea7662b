// What is in the memory of a process, as a core of it would hold it: for tests that look for secrets. Must not know whose
// memory it is. Linux only.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const PAGE = 4_096;
/** Pages that are asked about, and bytes that are read, at once. */
const PAGES_AT_ONCE = 262_144;
const BYTES_AT_ONCE = 4 * 2 ** 20;
/** In an entry of `pagemap`: the page is in memory, or swapped out. */
const PRESENT_OR_SWAPPED = 0xc0;

/** What was found. `bytes`: how much was read; 0 for a process that has ended. */
export type MemoryFinding = Readonly<{ found: readonly string[]; bytes: number }>;

/** Runs of pages that are there, within one mapping. */
function* presentRuns(pagemap: number, from: number, to: number): Generator<readonly [from: number, to: number]> {
  const entries = Buffer.alloc(PAGES_AT_ONCE * 8);
  let begun: number | undefined;
  for (let first = from / PAGE; first < to / PAGE; first += PAGES_AT_ONCE) {
    const count = Math.min(PAGES_AT_ONCE, to / PAGE - first);
    const read = readSync(pagemap, entries, 0, count * 8, first * 8);
    for (let at = 0; at < count; at += 1) {
      const isThere = at * 8 + 7 < read && ((entries[at * 8 + 7] ?? 0) & PRESENT_OR_SWAPPED) !== 0;
      const address = (first + at) * PAGE;
      if (isThere) begun ??= address;
      else if (begun !== undefined) {
        yield [begun, address];
        begun = undefined;
      }
    }
  }
  if (begun !== undefined) yield [begun, to];
}

/** Mappings that can be read and whose pages are the process's own or shared; not those of the kernel. */
const mappingsOf = (pid: number | string): readonly (readonly [number, number])[] =>
  readFileSync(`/proc/${pid}/smaps`, 'latin1')
    .split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)
    .flatMap((text) => {
      const [, from, to, flags, name] = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)/.exec(text) ?? [];
      const isEmpty = /^Rss: +0 kB$/m.test(text) && /^Swap: +0 kB$/m.test(text);
      if (from === undefined || to === undefined || isEmpty || flags?.[0] !== 'r' || name?.startsWith('[v') === true)
        return [];
      return [[Number.parseInt(from, 16), Number.parseInt(to, 16)] as const];
    });

/** Reads a part; 0 bytes of pages that were given back meanwhile. */
const readPart = (memory: number, buffer: Buffer, length: number, position: number): number => {
  try {
    return readSync(memory, buffer, 0, length, position);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EIO') return 0;
    throw error;
  }
};

/** Looks for texts, also as UTF-16, in all memory of a process. A process that ends meanwhile has none. Needs its user, or root. */
export const findInMemory = (pid: number | string, texts: readonly string[]): MemoryFinding => {
  const forms = texts.flatMap((text) => [
    { text, form: Buffer.from(text, 'latin1') },
    { text, form: Buffer.from(text, 'utf16le') },
  ]);
  const overlap = Math.max(...forms.map(({ form }) => form.length));
  const found = new Set<string>();
  const buffer = Buffer.alloc(BYTES_AT_ONCE + overlap);
  let bytes = 0;
  const opened: number[] = [];
  try {
    const mappings = mappingsOf(pid);
    const memory = openSync(`/proc/${pid}/mem`, 'r');
    opened.push(memory);
    const pagemap = openSync(`/proc/${pid}/pagemap`, 'r');
    opened.push(pagemap);
    for (const [from, to] of mappings) {
      for (const [begin, end] of presentRuns(pagemap, from, to)) {
        for (let at = begin; at < end; at += BYTES_AT_ONCE) {
          const read = readPart(memory, buffer, Math.min(BYTES_AT_ONCE + overlap, end - at), at);
          bytes += read;
          const part = buffer.subarray(0, read);
          for (const { text, form } of forms) if (!found.has(text) && part.includes(form)) found.add(text);
        }
      }
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
  } finally {
    for (const file of opened) closeSync(file);
  }
  return { found: [...found], bytes };
};
