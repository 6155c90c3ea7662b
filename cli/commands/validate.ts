// `beeuni validate`: the manifest of a folder with its agent files, offline, by the one validator of the product. Source: A85.
import { lstatSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseYaml } from '#base/yaml.ts';
import { validateManifest } from '#schema/manifest/validate.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { EXIT, usageError } from '../failure.ts';
import { plainJson } from '../plain-text.ts';
import { problemLine } from '../problem-line.ts';

const MANIFEST = 'beeuni.yaml';
/** Larger files are no manifest. Units: bytes. */
const MAX_BYTES = 1_048_576;

/** The text of a regular file; undefined for everything else, so that nothing hangs on a pipe or a device. */
const readText = (path: string): string | undefined => {
  try {
    const stat = lstatSync(path);
    return stat.isFile() && stat.size <= MAX_BYTES ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
};

/** See the file. */
export const command = defineCommand({
  summary: 'check a beeuni.yaml and its agent files in a folder, offline',
  arguments: [{ name: 'PATH', summary: 'a folder, or a manifest; this folder otherwise', optional: true }],
  options: JSON_OPTION,
  details: [
    'Problems are printed as file:line:column. Exit code 0 when there is no error, 1 when there is one. Model names are not checked: beeuni projects validate does that on the server.',
  ],
  run: async ({ args, options, io, print, note }) => {
    const given = resolve(io.cwd, args[0] ?? '.');
    const stat = lstatSync(given, { throwIfNoEntry: false });
    if (stat === undefined) throw usageError(`${args[0] ?? '.'} does not exist`);
    const folder = stat.isDirectory() ? given : dirname(given);
    const file = stat.isDirectory() ? MANIFEST : basename(given);
    const verdict = validateManifest({
      path: file,
      text: readText(join(folder, file)),
      readFile: (path) => readText(join(folder, path)),
      parseYaml,
    });
    const shown = (path: string): string => relative(io.cwd, join(folder, path)) || path;
    const named = { errors: verdict.errors, warnings: verdict.warnings };
    if (options.json) print(plainJson({ valid: verdict.errors.length === 0, ...named }, 2));
    else {
      print(...verdict.errors.map((problem) => problemLine({ ...problem, path: shown(problem.path) }, 'error')));
      print(...verdict.warnings.map((problem) => problemLine({ ...problem, path: shown(problem.path) }, 'warning')));
      if (verdict.errors.length === 0) note(`${shown(file)} is valid`);
    }
    return verdict.errors.length === 0 ? EXIT.done : EXIT.failed;
  },
});
