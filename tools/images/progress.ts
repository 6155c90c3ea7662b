// Runs a program that takes long and lets a person see that it goes on.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Options of {@link runWithProgress}. Lines that match `show` are logged; without it none are. */
export interface ProgressOptions {
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly log: (line: string) => void;
  readonly show?: RegExp | undefined;
}

/** Resolves when the program ends with 0; any other end rejects with its last 30 lines. After 15 s without a line it tells that the program still runs. */
export async function runWithProgress(
  program: string,
  args: readonly string[],
  options: ProgressOptions,
): Promise<void> {
  const child = spawn(program, args, { env: options.env ?? process.env, stdio: ['ignore', 'pipe', 'pipe'] });
  const last: string[] = [];
  const startedAt = performance.now();
  let shownAt = startedAt;
  const onLine = (line: string): void => {
    last.push(line);
    if (last.length > 30) last.shift();
    if (!options.show?.test(line)) return;
    shownAt = performance.now();
    options.log(line.length > 140 ? `${line.slice(0, 139)}…` : line);
  };
  createInterface({ input: child.stdout }).on('line', onLine);
  createInterface({ input: child.stderr }).on('line', onLine);
  const ticker = setInterval(() => {
    if (performance.now() - shownAt < 15_000) return;
    shownAt = performance.now();
    options.log(`still at it after ${Math.round((shownAt - startedAt) / 1000)} s`);
  }, 5000);
  try {
    const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
    if (code !== 0)
      throw new Error(`${program} ${args[0] ?? ''} ended with ${code ?? 'a signal'}:\n${last.join('\n')}`);
  } finally {
    clearInterval(ticker);
  }
}
