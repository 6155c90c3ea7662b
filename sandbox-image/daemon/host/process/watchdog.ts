// Ends this process when its event loop stands still: a shell beside it waits for a sign that the loop gives each second.
// A liveness probe cannot do it in time (with restartPolicy Never its own grace period has no effect), and a thread takes 10 MB
// where the shell takes less than 1 (docs/decisions/0049). Must not know the daemon. Source: 10-kubernetes §7, sandbox-pod §6.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Logger } from '#base/log.ts';

/** How long the loop may stand still. Units: milliseconds. */
export const STANDSTILL_LIMIT_MS = 30_000;

/**
 * The shell: seconds of a tick, how many may pass without a sign, and the file for the last word. It counts its own ticks, not
 * time, so that a container that was stopped as a whole is not judged. The end of its input is the end of the process.
 */
const SHELL = `
missed=0
while :; do
  read -r -t "$1" && { missed=0; continue; }
  [ $? -gt 128 ] || exit 0
  missed=$((missed + 1))
  [ $missed -ge $2 ] || continue
  [ ! -e "$3" ] || printf '%s\\n' 'the event loop of the daemon stood still; it ended itself' >"$3"
  kill -KILL $PPID
  exit 1
done
`;

/** Starts watching; gives back how to stop. `terminationFile` gets one line before the end, if it exists. */
export const startWatchdog = (
  settings: Readonly<{ limitMs?: number; terminationFile: string; log: Logger }>,
): (() => void) => {
  const { terminationFile, log } = settings;
  const limitMs = settings.limitMs ?? STANDSTILL_LIMIT_MS;
  const tickMs = Math.max(10, Math.min(1_000, Math.floor(limitMs / 10)));
  const args = [String(tickMs / 1_000), String(Math.ceil(limitMs / tickMs)), terminationFile];
  let shell: ChildProcess | undefined;
  let again: NodeJS.Timeout | undefined;
  let isStopped = false;

  const start = (): void => {
    // No environment: nothing of this process is shown to whoever looks at that one, and what ends leftovers passes it by.
    const started = spawn('/bin/bash', ['-c', SHELL, 'beeunid-watchdog', ...args], {
      cwd: '/',
      env: {},
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    shell = started;
    started.stdin?.on('error', () => {});
    let isGone = false;
    const gone = (reason: string): void => {
      if (isGone || isStopped) return;
      isGone = true;
      log.warn('nobody watches the event loop; starting that again', { reason });
      again = setTimeout(start, tickMs);
      again.unref();
    };
    started.once('error', (error) => gone(error.message));
    started.once('exit', (code, signal) => gone(signal ?? `code ${code}`));
    started.unref();
  };
  start();
  const timer = setInterval(() => {
    if (shell?.stdin?.writable === true && shell.stdin.writableLength === 0) shell.stdin.write('\n');
  }, tickMs);
  timer.unref();
  return () => {
    isStopped = true;
    clearInterval(timer);
    clearTimeout(again);
    shell?.stdin?.end();
  };
};
