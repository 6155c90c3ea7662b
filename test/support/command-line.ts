// The command line in process, with streams of its own, or as a program. Must not know any single command.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setImmediate as nextRound } from 'node:timers/promises';
import type { Io } from '#cli/io.ts';
import { runCli } from '#cli/run.ts';
import { startPty } from '#daemon/host/terminal/pty.ts';
import { until } from './until.ts';

/** A finished call. */
export type Finished = Readonly<{ code: number; out: string; err: string }>;

/** A call that may still run. */
export type RunningCall = Readonly<{
  out: () => string;
  err: () => string;
  type: (text: string) => void;
  interrupt: () => void;
  /** Waits until stdout holds the text. */
  shows: (text: string | RegExp) => Promise<void>;
  done: Promise<Finished>;
}>;

/** Where a call runs. `terminal`: a person types and reads. */
export type CallPlace = Readonly<{
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  homeDir?: string;
  terminal?: boolean;
  stdin?: string;
}>;

/** A home with nothing in it, for calls that bring none. */
const NO_HOME = mkdtempSync(join(tmpdir(), 'beeuni-home-'));
process.once('exit', () => rmSync(NO_HOME, { recursive: true, force: true }));

/** Starts a call in process. */
export const startCommand = (words: readonly string[], place: CallPlace = {}): RunningCall => {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  let out = '';
  let err = '';
  streams.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  streams.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const interrupts = new Set<() => void>();
  const terminal = place.terminal === true;
  const io: Io = {
    ...streams,
    env: { PATH: process.env['PATH'], ...place.env },
    cwd: place.cwd ?? '/',
    homeDir: place.homeDir ?? NO_HOME,
    isTerminal: { stdin: terminal, stdout: terminal },
    size: () => ({ columns: 100, rows: 30 }),
    onResize: () => () => {},
    onInterrupt: (react) => {
      interrupts.add(react);
      return () => {
        interrupts.delete(react);
      };
    },
    onExit: () => () => {},
    setRaw: () => {},
    version: '9.9.9',
  };
  if (!terminal) streams.stdin.end(place.stdin ?? '');
  const done = runCli(words, io).then(async (code) => {
    // What was written last is still on its way through the streams.
    await nextRound();
    return { code, out, err };
  });
  return {
    out: () => out,
    err: () => err,
    type: (text) => {
      streams.stdin.write(text);
    },
    interrupt: () => {
      for (const react of interrupts) react();
    },
    shows: async (text) => {
      const isThere = () => (typeof text === 'string' ? out.includes(text) : text.test(out));
      await until(`the terminal shows ${text}`, isThere, { describe: () => ({ out, err }) });
    },
    done,
  };
};

/** Runs a call in process to its end. */
export const runCommand = (words: readonly string[], place?: CallPlace): Promise<Finished> =>
  startCommand(words, place).done;

const MAIN = new URL('../../cli/main.ts', import.meta.url).pathname;

/** Runs a call as a program of its own, with nothing of this process's environment but PATH. */
export const runProgramCall = (words: readonly string[], place: CallPlace = {}): Promise<Finished> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN, ...words], {
      cwd: place.cwd ?? '/',
      env: { PATH: process.env['PATH'], HOME: place.homeDir ?? NO_HOME, ...place.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? -1, out, err }));
    child.stdin.end(place.stdin ?? '');
  });

/** A call that runs in a real terminal. */
export type TerminalCall = Readonly<{
  text: () => string;
  type: (text: string) => void;
  resize: (cols: number, rows: number) => void;
  shows: (text: string | RegExp) => Promise<void>;
  exitCode: Promise<number>;
}>;

/** Starts a call as a program in a terminal of 100 × 30. */
export const startInTerminal = async (words: readonly string[], place: CallPlace = {}): Promise<TerminalCall> => {
  const chunks: Buffer[] = [];
  const text = (): string => Buffer.concat(chunks).toString('utf8');
  const { promise, resolve } = Promise.withResolvers<number>();
  const terminal = await startPty(
    {
      file: process.execPath,
      args: ['--disable-warning=ExperimentalWarning', MAIN, ...words],
      cols: 100,
      rows: 30,
      cwd: place.cwd ?? '/',
      environment: { PATH: process.env['PATH'] ?? '', HOME: place.homeDir ?? NO_HOME, ...place.env },
    },
    { data: (bytes) => chunks.push(bytes), drain: () => {}, exit: resolve },
  );
  return {
    text,
    type: (typed) => {
      terminal.write(Buffer.from(typed));
    },
    resize: terminal.resize,
    shows: async (part) => {
      const isThere = () => (typeof part === 'string' ? text().includes(part) : part.test(text()));
      await until(`the terminal shows ${part}`, isThere, { describe: text });
    },
    exitCode: promise,
  };
};
