// Where the test cluster and the tools keep what is costly to make: outside the work tree, so that a clean clone starts warm.
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Absolute path of a folder of our cache, made when missing. Root: BEEUNI_CACHE_DIR, else XDG_CACHE_HOME/beeuni, else ~/.cache/beeuni. */
export function cacheDir(...parts: readonly string[]): string {
  const root =
    process.env['BEEUNI_CACHE_DIR'] || join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'beeuni');
  const dir = join(root, ...parts);
  mkdirSync(dir, { recursive: true });
  return dir;
}
