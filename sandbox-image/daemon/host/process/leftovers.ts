// Ends what a harness leaves behind: its shells have sessions and groups of their own, so only a marker in their
// environment, their ancestry, or being an orphan in our container finds them. Linux only.
// Must not know any harness. Source: sandbox-pod §6, FB6.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '#base/log.ts';

/** One process as the kernel shows it. `marked`: its environment carries the marker. */
export type ProcessEntry = Readonly<{ pid: number; parent: number; marked: boolean }>;

/** Who is to be ended. Pure. `self` and what has neither mark, marked ancestor nor (with `init`) PID 1 as parent stay. */
export const leftoversOf = (
  processes: readonly ProcessEntry[],
  self: number,
  options: Readonly<{ orphans: boolean; known: ReadonlySet<number> }>,
): readonly number[] => {
  const byPid = new Map(processes.map((entry) => [entry.pid, entry]));
  const isLeftover = (entry: ProcessEntry, depth: number): boolean => {
    if (entry.pid === self || entry.pid === 1 || options.known.has(entry.pid)) return false;
    if (entry.marked) return true;
    if (options.orphans && entry.parent === 1) return true;
    const parent = byPid.get(entry.parent);
    return parent !== undefined && depth < 64 && isLeftover(parent, depth + 1);
  };
  return processes.filter((entry) => isLeftover(entry, 0)).map((entry) => entry.pid);
};

const readProcesses = (marker: string): ProcessEntry[] => {
  const needle = Buffer.from(`${marker}\0`);
  const result: ProcessEntry[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (state === 'Z' || state === 'X') continue;
      let marked = false;
      try {
        const environment = readFileSync(`/proc/${name}/environ`);
        marked =
          environment.subarray(0, needle.length).equals(needle) ||
          environment.includes(Buffer.concat([Buffer.from('\0'), needle]));
      } catch {
        // Not ours to read, hence not ours.
      }
      result.push({ pid: Number(name), parent: Number(parent), marked });
    } catch {
      // It ended meanwhile.
    }
  }
  return result;
};

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended meanwhile.
  }
};

/**
 * Kills every process that carries `NAME=value`, descends from one, or (when the daemon is the child of PID 1, as in its
 * container) is an orphan that is not in `known`. Looks again until a look finds none, ten times at most.
 */
export const endLeftovers = async (
  marker: Readonly<{ name: string; value: string }>,
  known: ReadonlySet<number>,
  log: Logger,
): Promise<void> => {
  const orphans = process.ppid === 1;
  for (let round = 0; round < 10; round += 1) {
    const pids = leftoversOf(readProcesses(`${marker.name}=${marker.value}`), process.pid, { orphans, known });
    if (pids.length === 0) return;
    if (round === 0) log.info('ending what the harness left', { processes: pids.length });
    for (const pid of pids) kill(pid);
    await wait(50);
  }
  log.error('processes of the harness cannot be ended');
};
