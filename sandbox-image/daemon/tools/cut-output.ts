// Cuts an output that is too long for a model: the head stays, all of it goes into a file that the agent can read.
// Must not know tools. Source: A108.
import { randomBytes } from 'node:crypto';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { headOfBytes } from '#base/head-of-text.ts';

/** Longest output that a model gets as it is. Units: bytes of UTF-8, lines. */
export const MAX_OUTPUT_BYTES = 51_200;
export const MAX_OUTPUT_LINES = 2_000;
/** Most that is kept of one output. Units: bytes. */
const MAX_SAVED_BYTES = 16_777_216;
/** Room for the words about the cut. Units: bytes. */
const NOTICE_BYTES = 640;

const firstLines = (text: string, count: number): string => {
  let end = -1;
  for (let line = 0; line < count; line += 1) {
    end = text.indexOf('\n', end + 1);
    if (end === -1) return text;
  }
  return text.slice(0, end);
};

/** Gives back outputs that fit as they are, and a head with size and path for others. */
export type CutOutput = (output: string) => Promise<string>;

/** Makes the cutter; files go into `directory`, which is made when it is needed. */
export const makeCutOutput =
  (directory: string): CutOutput =>
  async (output) => {
    const bytes = Buffer.byteLength(output);
    const lines = output.split('\n').length;
    if (bytes <= MAX_OUTPUT_BYTES && lines <= MAX_OUTPUT_LINES) return output;
    const head = headOfBytes(firstLines(output, MAX_OUTPUT_LINES - 4), MAX_OUTPUT_BYTES - NOTICE_BYTES);
    const size = `The output has ${bytes} bytes in ${lines} lines and is cut here.`;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const path = join(directory, `output-${randomBytes(6).toString('hex')}.txt`);
      const file = await open(path, 'wx', 0o600);
      try {
        await file.writeFile(headOfBytes(output, MAX_SAVED_BYTES));
      } finally {
        await file.close();
      }
      const all = bytes > MAX_SAVED_BYTES ? `Its first ${MAX_SAVED_BYTES} bytes are` : 'All of it is';
      return `${head}\n\n[${size} ${all} in ${path}]`;
    } catch {
      return `${head}\n\n[${size} The rest could not be saved.]`;
    }
  };
