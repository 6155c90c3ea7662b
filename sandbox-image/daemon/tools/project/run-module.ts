// Runs the module of a project tool in a process of its own: an environment that is given and nothing else, a time limit, a
// bounded answer, and an end of its whole process group. Must not know registries. Source: A106, A107, A109.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Clock } from '#base/clock.ts';
import { ToolError } from '../define-tool.ts';

/** What a process said. */
const answerShape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('unusable'), message: z.string() }),
  z.object({
    kind: z.literal('described'),
    description: z.string().max(8_192),
    parameters: z.record(z.string(), z.unknown()),
  }),
  z.object({ kind: z.literal('completed'), output: z.string() }),
  z.object({ kind: z.literal('failed'), message: z.string() }),
]);
export type ModuleAnswer = z.output<typeof answerShape>;

/** One run. `call` absent: the module is only described. Units: milliseconds. */
export type ModuleRun = Readonly<{
  module: string;
  call?: Readonly<{ arguments: unknown; sessionId: string; agent: string | null; directory: string }> | undefined;
  cwd: string;
  environment: Readonly<Record<string, string>>;
  timeoutMs: number;
  signal: AbortSignal;
}>;

/** Ports of a run. `output`: a line that the module printed. */
export type RunModulePorts = Readonly<{ clock: Clock; output: (line: string) => void }>;

/** Runs once. Throws ToolError when there is no answer: time limit, abort, exit, an answer that is too long. */
export type RunModule = (run: ModuleRun) => Promise<ModuleAnswer>;

const RUNNER = fileURLToPath(new URL('./runner.ts', import.meta.url));
const MAX_ANSWER_BYTES = 8_388_608;
const MAX_LINES = 200;
/** Between the polite end and the other one. */
const GRACE_MS = 1_000;

const killGroup = (pid: number | undefined, signal: NodeJS.Signals): void => {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone.
  }
};

/** Makes the runner. */
export const makeRunModule =
  ({ clock, output }: RunModulePorts): RunModule =>
  (run) =>
    new Promise((resolve, reject) => {
      if (run.signal.aborted) {
        reject(new ToolError('the call was aborted'));
        return;
      }
      const child = spawn(process.execPath, ['--no-warnings', '--max-old-space-size=256', RUNNER], {
        cwd: run.cwd,
        env: { ...run.environment },
        stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
        detached: true,
      });
      let why: string | undefined;
      let cancelKill = (): void => {};
      const end = (reason: string): void => {
        if (why !== undefined) return;
        why = reason;
        killGroup(child.pid, 'SIGTERM');
        cancelKill = clock.startTimer(GRACE_MS, () => killGroup(child.pid, 'SIGKILL'));
      };
      const cancelLimit = clock.startTimer(run.timeoutMs, () => end(`it took longer than ${run.timeoutMs} ms`));
      const onAbort = (): void => end('the call was aborted');
      run.signal.addEventListener('abort', onAbort, { once: true });

      const parts: Buffer[] = [];
      let size = 0;
      (child.stdio[3] as Readable).on('data', (part: Buffer) => {
        size += part.length;
        if (size > MAX_ANSWER_BYTES) end(`its answer is longer than ${MAX_ANSWER_BYTES} bytes`);
        else parts.push(part);
      });
      let lines = 0;
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream as Readable }).on('line', (line) => {
          lines += 1;
          if (lines <= MAX_LINES) output(line.slice(0, 1_024));
        });
      }
      child.stdin?.on('error', () => {});
      const call = run.call && {
        arguments: run.call.arguments,
        context: { sessionId: run.call.sessionId, agent: run.call.agent, directory: run.call.directory },
      };
      child.stdin?.end(JSON.stringify({ module: run.module, ...(call === undefined ? {} : { call }) }));

      let finished = false;
      const finish = (how: string): void => {
        if (finished) return;
        finished = true;
        for (const cancel of [cancelLimit, cancelKill, cancelWait]) cancel();
        run.signal.removeEventListener('abort', onAbort);
        for (const stream of child.stdio) stream?.destroy();
        try {
          if (why !== undefined) throw new ToolError(why);
          const parsed = answerShape.safeParse(parts.length === 0 ? {} : JSON.parse(Buffer.concat(parts).toString()));
          if (!parsed.success) throw new ToolError(`it ended without an answer (${how})`);
          resolve(parsed.data);
        } catch (error) {
          reject(error instanceof ToolError ? error : new ToolError(`its answer cannot be read (${how})`));
        }
      };
      let cancelWait = (): void => {};
      child.once('error', (error) => finish(error.message));
      child.once('exit', (code, signal) => {
        const how = signal ?? `exit code ${code}`;
        // What the module started dies with it; what has left its group may hold the pipes, and is not waited for.
        killGroup(child.pid, 'SIGKILL');
        cancelWait = clock.startTimer(GRACE_MS, () => finish(how));
        child.once('close', () => finish(how));
      });
    });
