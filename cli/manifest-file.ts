// The manifest of a folder with its agent files, read and judged offline. A repository is foreign: only regular files of a sane size
// are read. Must not know who prints it. Source: A84, A85.
import { lstatSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseYaml } from '#base/yaml.ts';
import { type ManifestVerdict, validateManifest } from '#schema/manifest/validate.ts';
import { CommandError, EXIT, usageError } from './failure.ts';

/** Name of the manifest. */
export const MANIFEST = 'beeuni.yaml';
/** Larger files are no manifest. Units: bytes. */
const MAX_BYTES = 1_048_576;

/** The text of a regular file; undefined for everything else, so that nothing hangs on a pipe or a device. */
export const readTextFile = (path: string): string | undefined => {
  try {
    const stat = lstatSync(path);
    return stat.isFile() && stat.size <= MAX_BYTES ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
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
  return { folder, file, text, verdict: validateManifest({ path: file, text, readFile, parseYaml }) };
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
