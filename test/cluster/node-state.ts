// What is known of a node cluster between two commands: its folder, its number, its first process, and how to enter it.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.ts';
import { type NodeLayout, nodeLayout } from './node-layout.ts';
import { isRunning, type ProcessIdentity } from './process.ts';

/** Name of the cluster when none is given. */
export const defaultName = 'beeuni';

/** What a start writes down before it makes anything else. `programKey` names the build of the `kube` program. */
export interface NodeState {
  readonly number: number;
  readonly programKey: string;
}

/** The name itself. Throws when it cannot be part of host names, control groups and folder names. */
export function checkedName(name: string = defaultName): string {
  if (!/^[a-z][a-z0-9-]{0,19}$/.test(name))
    throw new Error(`cluster name ${name}: use a to z, 0 to 9 and -, at most 20, a letter first`);
  return name;
}

/** Folder of everything that this cluster writes; it may be missing. */
export function runDir(name: string): string {
  return join(cacheDir('cluster', 'run'), name);
}

/** File that is locked while any cluster starts or stops. */
export function lockPath(): string {
  return join(cacheDir('cluster', 'run'), 'lock');
}

/** State of a cluster that was started; undefined when it never was, or is cleaned. */
export function readState(name: string): NodeState | undefined {
  try {
    return JSON.parse(readFileSync(join(runDir(name), 'state.json'), 'utf8')) as NodeState;
  } catch {
    return undefined;
  }
}

/** Writes the state down; the folder exists. */
export function writeState(name: string, state: NodeState): void {
  writeFileSync(join(runDir(name), 'state.json'), JSON.stringify(state));
}

/** Layout of a cluster from its state. */
export function layoutOf(name: string, state: NodeState): NodeLayout {
  return nodeLayout({ name, number: state.number, dir: runDir(name), programKey: state.programKey });
}

/** The first process of the cluster, as it wrote itself down; undefined when it has not, or does not run any more. */
export function runningInit(name: string): ProcessIdentity | undefined {
  let words: string[];
  try {
    words = readFileSync(join(runDir(name), 'init.pid'), 'utf8')
      .trim()
      .split(' ');
  } catch {
    return undefined;
  }
  const init = { pid: Number(words[0]), startTicks: words[1] ?? '' };
  return isRunning(init) ? init : undefined;
}

/** Arguments of nsenter that come before a command which is to run inside the node. */
export function enter(init: ProcessIdentity): string[] {
  return ['--target', String(init.pid), '--mount', '--net', '--pid', '--'];
}
