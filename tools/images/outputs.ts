// Built images in the cache: how many stay.
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '#test/cluster/cache-dir.ts';

// A layer that several have is on disk once, so more of them cost little; a slow reader may still use an older one.
const kept = 4;

/** Keeps the newest outputs `<prefix><12 hex digits>.{tar,oci}`, by time of last use, and what a cut-off build left is removed. */
export function removeOldOutputs(prefix: string): void {
  const dir = cacheDir('images');
  const outputs = readdirSync(dir)
    .filter((file) => file.startsWith(prefix) && /^[0-9a-f]{12}\.(tar|oci)$/.test(file.slice(prefix.length)))
    .map((file) => ({ path: join(dir, file), usedMs: statSync(join(dir, file)).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  const unfinished = readdirSync(dir).filter((file) => file.startsWith(prefix) && file.endsWith('.new'));
  for (const { path } of outputs.slice(kept)) rmSync(path, { recursive: true, force: true });
  for (const file of unfinished) rmSync(join(dir, file), { recursive: true, force: true });
}
