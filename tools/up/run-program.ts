// Runs programs to their end for the tools, with errors that a person can act on.
import { spawn } from 'node:child_process';

/** A program ended with another code than 0. The message holds the command and the end of its output. */
export class ProgramFailed extends Error {
  readonly code: number;
  readonly output: string;
  constructor(command: string, code: number, output: string) {
    super(`${command} ended with ${code}\n${output.trim().split('\n').slice(-15).join('\n')}`);
    this.name = 'ProgramFailed';
    this.code = code;
    this.output = output;
  }
}

/** Standard output of a program. `input` goes to its standard input. Rejects with ProgramFailed. */
export const runProgram = (
  program: string,
  args: readonly string[],
  options: { input?: string; env?: Readonly<Record<string, string>>; cwd?: string; timeoutMs?: number } = {},
): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs }),
    });
    let out = '';
    let error = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      error += text;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(out);
      else reject(new ProgramFailed(`${program} ${args.slice(0, 4).join(' ')}`, code ?? -1, error || out));
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });

/** Asks `look` every `everyMs` until it gives a value; after `timeoutMs` rejects with what `describe` says then. */
export const waitFor = async <T>(
  what: string,
  look: () => Promise<T | undefined>,
  options: { timeoutMs: number; everyMs?: number; describe?: () => string },
): Promise<T> => {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    const value = await look();
    if (value !== undefined) return value;
    if (performance.now() > deadline)
      throw new Error(
        `waited ${options.timeoutMs / 1000} s for ${what}${options.describe ? `: ${options.describe()}` : ''}`,
      );
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 500));
  }
};
