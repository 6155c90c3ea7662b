// Memory of processes as the kernel tells it. For ../harness.ts.
import { readFileSync } from 'node:fs';

/**
 * In MB: all that is resident; of it what no file backs, which is the process's own; and pages of files, which all processes of
 * the same program share.
 */
export type Memory = Readonly<{ rssMb: number; anonymousMb: number; fileMb: number }>;

const readMemory = (pid: number): Memory => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (name: string): number =>
    Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 102.4) / 10;
  return { rssMb: of('VmRSS'), anonymousMb: of('RssAnon'), fileMb: of('RssFile') };
};

const combine = (one: Memory, other: Memory, factor: 1 | -1): Memory => {
  const of = (name: keyof Memory): number => Number((one[name] + factor * other[name]).toFixed(1));
  return { rssMb: of('rssMb'), anonymousMb: of('anonymousMb'), fileMb: of('fileMb') };
};

/** Memory of all of them together. */
export const memoryOf = (...pids: readonly number[]): Memory =>
  pids.map(readMemory).reduce((sum, memory) => combine(sum, memory, 1));

/** What one has above the other. */
export const above = (one: Memory, floor: Memory): Memory => combine(one, floor, -1);

/** A daemon and the shell that watches its event loop. */
export const daemonMemory = (pid: number): Memory => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  const shells = children.filter((child) => readFileSync(`/proc/${child}/comm`, 'utf8').trim() === 'bash');
  return memoryOf(pid, ...shells);
};
