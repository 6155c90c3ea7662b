// Processes as the cluster needs them: run to the end, start with a log file, name one safely, end it for sure.
// Knows nothing of Kubernetes.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** How a finished program ended. `code` is null when a signal ended it. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of {@link run}. `input` goes to standard input; without it standard input is empty. */
export interface RunOptions {
  readonly input?: string | Uint8Array | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly cwd?: string | undefined;
}

/** Result of a program that ran to its end, whatever its exit code. Rejects only when it cannot be started. */
export function runToEnd(program: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    child.on('error', reject);
    child.on('close', (code) =>
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }),
    );
    child.stdin.on('error', () => undefined); // A program that ends without reading its input is no fault of ours.
    child.stdin.end(options.input);
  });
}

/** Standard output of a program that ended with 0. Any other end rejects with the program's own words. */
export async function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const finished = await runToEnd(program, args, options);
  if (finished.code !== 0) {
    const words = (finished.stderr.trim() || finished.stdout.trim()).slice(-2000);
    throw new Error(`${program} ${args.join(' ')} ended with ${finished.code ?? 'a signal'}: ${words}`);
  }
  return finished.stdout;
}

/** A child in its own session that writes both outputs to `logPath`. With `endWithParent` the kernel kills it when this process dies. */
export function startLogged(
  program: string,
  args: readonly string[],
  options: { readonly logPath: string; readonly endWithParent?: boolean; readonly env?: NodeJS.ProcessEnv },
): ChildProcess {
  const log = openSync(options.logPath, 'a');
  try {
    const line = options.endWithParent
      ? ['setpriv', '--pdeathsig', 'KILL', '--', program, ...args]
      : [program, ...args];
    const child = spawn(line[0] ?? program, line.slice(1), {
      detached: true,
      env: options.env ?? process.env,
      stdio: ['ignore', log, log],
    });
    child.on('error', () => undefined); // Seen as an exit by whoever waits for the program to answer.
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

/** A process that cannot be mistaken for a later one with the same number. `startTicks` is field 22 of /proc/PID/stat. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
}

/** Identity of a running process; undefined when it is gone or only waits to be reaped. */
export function identify(pid: number): ProcessIdentity | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the program's name in brackets and may hold spaces, so counting starts behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  const startTicks = fields[19];
  return state === undefined || startTicks === undefined || state === 'Z' || state === 'X'
    ? undefined
    : { pid, startTicks };
}

/** Whether exactly this process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startTicks === identity.startTicks;
}

/** Ends exactly this process with SIGKILL and resolves when it is gone; does nothing when it is gone already. */
export async function kill(identity: ProcessIdentity): Promise<void> {
  if (!isRunning(identity)) return;
  try {
    process.kill(identity.pid, 'SIGKILL');
  } catch {
    return;
  }
  // A write that the disk has not taken holds even a killed process.
  await waitUntil(() => !isRunning(identity), {
    timeoutMs: 60_000,
    everyMs: 20,
    describe: () => `process ${identity.pid} survives SIGKILL`,
  });
}

/** Resolves as soon as `condition` is true; asks every `everyMs`. After `timeoutMs` rejects with what `describe` says of the last state. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  options: { readonly timeoutMs: number; readonly everyMs?: number; readonly describe: () => string },
): Promise<void> {
  const deadline = performance.now() + options.timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${options.describe()} (waited ${options.timeoutMs / 1000} s)`);
    await delay(options.everyMs ?? 100);
  }
}

/** Last lines of a log file, for an error message. Empty when there is none. */
export function logTail(logPath: string, lines = 15): string {
  try {
    return readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
}
