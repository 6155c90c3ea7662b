// Everything of the process that a command may touch: streams, environment, folders, interrupts. Tests give their own.
// Must not know any command.
import type { Readable, Writable } from 'node:stream';
import type { Environment } from '#base/env.ts';

/** The process as commands see it. */
export type Io = Readonly<{
  env: Environment;
  cwd: string;
  homeDir: string;
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  /** Whether a person types on stdin and reads on stdout. */
  isTerminal: Readonly<{ stdin: boolean; stdout: boolean }>;
  /** Size of the terminal; 80 × 24 where there is none. */
  size: () => Readonly<{ columns: number; rows: number }>;
  /** Calls `react` when the terminal's size changes, until the function that is given back is called. */
  onResize: (react: () => void) => () => void;
  /** Calls `react` on Ctrl-C in place of ending the process, until the function that is given back is called. */
  onInterrupt: (react: () => void) => () => void;
  /** Calls `react` right before the process ends, however it ends, until the function that is given back is called. */
  onExit: (react: () => void) => () => void;
  /** Hands over each key as it is typed, or no longer. Nothing happens where stdin is no terminal. */
  setRaw: (raw: boolean) => void;
  /** The version of this program. */
  version: string;
}>;
