// A lock between processes: only one of them runs the guarded part at a time.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Result of `guarded`, run while this process alone holds the lock file. Waits without limit; `onWait` is called once when another one holds it.
 * The holder is a `flock` child that lives as long as its standard input, so a dead owner never leaves the lock taken.
 */
export async function withLock<T>(
  lockPath: string,
  guarded: () => Promise<T>,
  onWait: () => void = () => undefined,
): Promise<T> {
  const holder = spawn('flock', [lockPath, 'sh', '-c', 'echo held; exec cat > /dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(holder, 'close');
  const waiting = setTimeout(onWait, 500);
  try {
    const held = await Promise.race([once(holder.stdout, 'data'), ended]);
    if (String(held[0]).trim() !== 'held') throw new Error(`cannot lock ${lockPath}`);
    clearTimeout(waiting);
    return await guarded();
  } finally {
    clearTimeout(waiting);
    holder.stdin.end();
    await ended;
  }
}
