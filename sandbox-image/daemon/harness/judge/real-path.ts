// Where a path leads once all links are followed, also for a file that does not exist yet. Must not know what it is for.
import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** The path without links: the part that exists is resolved, the rest is kept. Never throws. */
export const realPath = (path: string): string => {
  const rest: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(realpathSync(at), ...rest);
    } catch {
      if (dirname(at) === at) return path;
      rest.unshift(basename(at));
    }
  }
};
