// The manifest of a folder with its agent files, read and judged offline. A repository is foreign: only regular files of a sane size
// are read. Must not know who prints it. Source: A84, A85.
import { isUtf8 } from 'node:buffer';
import { lstatSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseYaml } from '#base/yaml.ts';
import type { ManifestProblem } from '#schema/manifest/source.ts';
import { type FoundFile, MAX_CONFIG_FILE_BYTES, unreadProblem } from '#schema/manifest/unread-file.ts';
import { type ManifestVerdict, validateManifest } from '#schema/manifest/validate.ts';
import { CommandError, EXIT, usageError } from './failure.ts';

/** Name of the manifest. */
export const MANIFEST = 'beeuni.yaml';

/** What is at a path. Only a regular file of a sane size is opened, so that nothing hangs on a pipe or a device. */
const findFile = (path: string): FoundFile => {
  try {
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) return { kind: 'symlink' };
    if (!stat.isFile()) return { kind: 'not-a-file' };
    if (stat.size > MAX_CONFIG_FILE_BYTES) return { kind: 'too-large', size: stat.size };
    const bytes = readFileSync(path);
    return isUtf8(bytes) ? { kind: 'text', text: bytes.toString('utf8') } : { kind: 'not-utf8' };
  } catch {
    return { kind: 'missing' };
  }
};

/** The text of a regular file; undefined for everything else. */
const readTextFile = (path: string): string | undefined => {
  const found = findFile(path);
  return found.kind === 'text' ? found.text : undefined;
};

/** A manifest with the verdict on it. `folder`: absolute; `file`: its name there. */
export type FoundManifest = Readonly<{
  folder: string;
  file: string;
  text: string | undefined;
  verdict: ManifestVerdict;
}>;

/** The verdict on a folder's manifest, or on the manifest that is named. Errors: CommandError (usage) for a path that is not there. */
export const judgeManifest = (cwd: string, given: string): FoundManifest => {
  const path = resolve(cwd, given);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw usageError(`${given} does not exist`);
  const folder = stat.isDirectory() ? path : dirname(path);
  const file = stat.isDirectory() ? MANIFEST : basename(path);
  const text = readTextFile(join(folder, file));
  const readFile = (name: string): string | undefined => readTextFile(join(folder, name));
  const unread = (name: string): ManifestProblem | undefined => unreadProblem(name, findFile(join(folder, name)));
  return { folder, file, text, verdict: validateManifest({ path: file, text, readFile, unread, parseYaml }) };
};

/** The manifest of this folder or of the nearest one above it. Errors: CommandError when there is none, or it has errors. */
export const findManifest = (cwd: string): FoundManifest => {
  for (let at = resolve(cwd); ; at = dirname(at)) {
    if (lstatSync(join(at, MANIFEST), { throwIfNoEntry: false })?.isFile() === true) {
      const found = judgeManifest(at, '.');
      if (found.verdict.manifest !== undefined) return found;
      throw new CommandError(EXIT.failed, `${join(at, MANIFEST)} has errors`, `beeuni validate ${at} lists them`);
    }
    if (dirname(at) === at) {
      throw new CommandError(EXIT.notFound, `there is no ${MANIFEST} here or in a folder above`);
    }
  }
};
