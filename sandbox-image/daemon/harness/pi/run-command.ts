// Runs a command line of the agent in a session and process group of its own, with the environment that the host grants
// and the mark by which the host finds what is left. Output flows only as fast as it is taken. Linux only.
// Must not know Pi. Source: FB6, FB5, harness-runtimes §3.5, A107.
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import type { ExecRequest, ExecResult } from './protocol.ts';

/** Output that may be under way before the command is held. Units: bytes. */
const MAX_UNTAKEN = 1_048_576;
/** How long output is awaited of a command that has ended while others hold its pipes. Units: milliseconds. */
const PIPE_GRACE_MS = 150;

/** A running command. */
export type RunningCommand = Readonly<{
  done: Promise<ExecResult>;
  /** Ends it and everything below it. */
  abort: () => void;
  /** So many bytes of its output were taken. */
  taken: (bytes: number) => void;
}>;

/** Environment entry that marks all processes of one command, also those that left its group and its tree. */
const CALL_VARIABLE = 'BEEUNI_CALL';

const carries = (pid: string, mark: string): boolean => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark);
  } catch {
    return false;
  }
};

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended meanwhile.
  }
};

/** Kills the group, then every process that carries the mark, until a look finds none. */
const killAll = (child: ChildProcess, mark: string): void => {
  if (child.pid !== undefined) kill(-child.pid);
  for (let round = 0; round < 5; round += 1) {
    const found = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && carries(name, mark));
    if (found.length === 0) return;
    for (const pid of found) kill(Number(pid));
  }
};

/** Starts a command. Never throws. `onOutput` gets both streams as they come. */
export const runCommand = (
  request: ExecRequest,
  environment: Readonly<Record<string, string>>,
  onOutput: (data: Uint8Array) => void,
): RunningCommand => {
  const call = randomBytes(8).toString('hex');
  let child: ChildProcessByStdio<null, Readable, Readable>;
  try {
    child = spawn('bash', ['-c', request.command], {
      cwd: request.cwd,
      env: { ...environment, [CALL_VARIABLE]: call },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    // Thrown, not emitted: a command that is too long for the system, a NUL in it, a path through a file.
    const message = error instanceof Error ? error.message.replaceAll('\0', '') : 'the command cannot be started';
    return { done: Promise.resolve({ kind: 'failed', message }), abort: () => {}, taken: () => {} };
  }
  const streams = [child.stdout, child.stderr];
  let untaken = 0;
  let ending: 'aborted' | 'timeout' | undefined;
  const end = (why: 'aborted' | 'timeout'): void => {
    ending ??= why;
    killAll(child, `${CALL_VARIABLE}=${call}`);
  };
  for (const stream of streams) {
    stream.on('error', () => {});
    stream.on('data', (data: Buffer) => {
      // A copy: the memory behind a chunk is shared with others.
      onOutput(Uint8Array.from(data));
      untaken += data.length;
      if (untaken > MAX_UNTAKEN) for (const each of streams) each.pause();
    });
  }
  const timer = request.timeoutMs === null ? undefined : setTimeout(() => end('timeout'), request.timeoutMs);
  const done = new Promise<ExecResult>((resolve) => {
    const settle = (result: ExecResult): void => {
      clearTimeout(timer);
      for (const stream of streams) stream.destroy();
      resolve(ending === undefined ? result : { kind: ending });
    };
    child.once('error', (error) => settle({ kind: 'failed', message: error.message }));
    const codeOf = (code: number | null, signal: NodeJS.Signals | null): ExecResult => ({
      kind: 'exited',
      code: code ?? (signal === null ? null : 128 + constants.signals[signal]),
    });
    child.once('close', (code, signal) => settle(codeOf(code, signal)));
    // Something in the background may hold the pipes for ever.
    child.once('exit', (code, signal) => {
      const wait = (): void => {
        if (untaken > 0 && ending === undefined) setTimeout(wait, PIPE_GRACE_MS).unref();
        else settle(codeOf(code, signal));
      };
      setTimeout(wait, PIPE_GRACE_MS).unref();
    });
  });
  return {
    done,
    abort: () => end('aborted'),
    taken: (bytes) => {
      untaken -= bytes;
      if (untaken <= MAX_UNTAKEN / 2) for (const stream of streams) if (stream.isPaused()) stream.resume();
    },
  };
};
