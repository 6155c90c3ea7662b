// Ends a node cluster and removes what it leaves, also one that died or never started completely.
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { layoutOf, readState, runDir, runningInit } from './node-state.ts';
import { kill, runToEnd, waitUntil } from './process.ts';

/** Ends every process of the cluster; its mounts, links, routes and firewall rules end with them. Files stay. */
export async function endProcesses(name: string): Promise<void> {
  const state = readState(name);
  const init = runningInit(name);
  if (init) {
    // The kernel removes the link too, but some time after the last process.
    if (state) await runToEnd('ip', ['link', 'delete', layoutOf(name, state).hostLink]);
    await kill(init);
  }
  await removeControlGroups(`beeuni-${name}`);
}

/** Ends the cluster and removes its files, but for containerd's store when images are kept. */
export async function clean(name: string, keepImages: boolean): Promise<void> {
  await endProcesses(name);
  const dir = runDir(name);
  if (!existsSync(dir)) return;
  if (!keepImages) {
    rmSync(dir, { recursive: true, force: true });
    return;
  }
  for (const entry of readdirSync(dir)) {
    if (entry !== 'containerd') rmSync(join(dir, entry), { recursive: true, force: true });
  }
}

async function removeControlGroups(group: string): Promise<void> {
  const roots = ['/sys/fs/cgroup', ...readdirSync('/sys/fs/cgroup').map((entry) => join('/sys/fs/cgroup', entry))];
  const groups = roots.map((root) => join(root, group)).filter((path) => existsSync(path));
  const remove = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) remove(join(path, entry.name));
    rmdirSync(path);
  };
  let last = '';
  await waitUntil(
    () => {
      try {
        for (const path of groups) if (existsSync(path)) remove(path);
        return true;
      } catch (err) {
        last = String(err);
        return false;
      }
    },
    { timeoutMs: 10_000, everyMs: 50, describe: () => `a control group cannot be removed: ${last}` },
  );
}
