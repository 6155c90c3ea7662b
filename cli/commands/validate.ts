// `beeuni validate`: the manifest of a folder with its agent files, offline, by the one validator of the product. Source: A85.
import { join, relative } from 'node:path';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { EXIT } from '../failure.ts';
import { judgeManifest } from '../manifest-file.ts';
import { plainJson } from '../plain-text.ts';
import { problemLine } from '../problem-line.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'check a beeuni.yaml and its agent files in a folder, offline',
  arguments: [{ name: 'PATH', summary: 'a folder, or a manifest; this folder otherwise', optional: true }],
  options: JSON_OPTION,
  details: [
    'Problems are printed as file:line:column. Exit code 0 when there is no error, 1 when there is one. Model names are not checked: beeuni projects validate does that on the server.',
  ],
  run: async ({ args, options, io, print, note }) => {
    const { folder, file, verdict } = judgeManifest(io.cwd, args[0] ?? '.');
    const shown = (path: string): string => relative(io.cwd, join(folder, path)) || path;
    const { errors, warnings } = verdict;
    if (options.json) print(plainJson({ valid: errors.length === 0, errors, warnings }, 2));
    else {
      print(...errors.map((problem) => problemLine({ ...problem, path: shown(problem.path) }, 'error')));
      print(...warnings.map((problem) => problemLine({ ...problem, path: shown(problem.path) }, 'warning')));
      if (errors.length === 0) note(`${shown(file)} is valid`);
    }
    return errors.length === 0 ? EXIT.done : EXIT.failed;
  },
});
