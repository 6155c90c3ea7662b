// The rules file at the root of the checkout, as a harness may be told of it: a regular file inside the repository.
// Must not know harnesses. Source: A26, A54 to A61, FE5.
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readlink, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { Logger } from '#base/log.ts';
import type { RulesFile } from '#daemon/harness/contract/adapter.ts';

const NAMES = ['AGENTS.md', 'CLAUDE.md'];
/** A larger file is no rules file. Units: bytes. */
const MAX_BYTES = 262_144;

const read = async (workspace: string, name: string, log: Logger): Promise<RulesFile | 'absent' | 'unusable'> => {
  const path = join(workspace, name);
  let real: string;
  try {
    real = await realpath(path);
  } catch {
    return 'absent';
  }
  const root = await realpath(workspace);
  if (!real.startsWith(root + sep)) {
    log.warn('the rules file leads out of the repository and is not read', { name });
    return 'unusable';
  }
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const info = await file.stat();
    // A folder of the path may have been swapped for a link since it was resolved.
    if ((await readlink(`/proc/self/fd/${file.fd}`)) !== real) {
      log.warn('the rules file changes its place while it is looked at and is not read', { name });
      return 'unusable';
    }
    if (!info.isFile() || info.size > MAX_BYTES) {
      log.warn('the rules file is no regular file of a reasonable size and is not read', { name, bytes: info.size });
      return 'unusable';
    }
    if (info.size === 0) return 'unusable';
    const content = await file.readFile();
    if (!isUtf8(content)) {
      log.warn('the rules file is no UTF-8 text and is not read', { name });
      return 'unusable';
    }
    const sha = createHash('sha256').update(content).digest('hex').slice(0, 12);
    return { source: 'workspace', path: real, bytes: content.length, sha };
  } finally {
    await file.close();
  }
};

/** The rules file of a workspace, null when there is none that may be read. Never rejects. */
export const findRulesFile = async (workspace: string, log: Logger): Promise<RulesFile | null> => {
  for (const name of NAMES) {
    try {
      const found = await read(workspace, name, log);
      if (found === 'absent') continue;
      return found === 'unusable' ? null : found;
    } catch (error) {
      log.warn('the rules file cannot be read', { name, err: error });
      return null;
    }
  }
  return null;
};
