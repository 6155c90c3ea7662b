// The processes of this machine, as /proc tells of them; one that ends while it is looked at counts as gone.
// Must not know whose they are.
import { readdirSync, readFileSync } from 'node:fs';

const told = (pid: number | string, what: 'cmdline' | 'environ'): string => {
  try {
    return readFileSync(`/proc/${pid}/${what}`, 'latin1');
  } catch {
    return '';
  }
};

/** Arguments of a process, each ended by NUL; empty when it is gone. */
export const commandLineOf = (pid: number | string): string => told(pid, 'cmdline');

/** `NAME=value` of a process, each ended by NUL; empty when it is gone. */
export const environmentOf = (pid: number | string): string => told(pid, 'environ');

/** Numbers of all processes. */
export const processIds = (): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** Those whose command line begins with `name`. */
export const commandsNamed = (name: string): readonly number[] =>
  processIds().filter((pid) => commandLineOf(pid).startsWith(name));
