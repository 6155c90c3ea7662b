// `beeuni projects validate`: the server's verdict on a manifest, model names included. Nothing is saved.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { validateManifestRoute } from '#schema/rest/projects.ts';
import { defineCommand, JSON_OPTION, PROJECT_OPTION } from '../command.ts';
import { EXIT, usageError } from '../failure.ts';
import { plainJson } from '../plain-text.ts';
import { problemLine } from '../problem-line.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'check a manifest against a project on the server, model names included',
  arguments: [{ name: 'FILE', summary: 'the manifest; beeuni.yaml otherwise', optional: true }],
  options: { ...JSON_OPTION, ...PROJECT_OPTION },
  needsApi: true,
  details: ['Exit code 1 when the verdict is blocked. Agent files are read from the commit that the project has now.'],
  run: async ({ api, args, options, io, print, note }) => {
    const path = args[0] ?? 'beeuni.yaml';
    let text: string;
    try {
      text = readFileSync(resolve(io.cwd, path), 'utf8');
    } catch {
      throw usageError(`${path} cannot be read`);
    }
    const params = api.requireProject(options.project);
    const { body } = await (await api.client()).call(validateManifestRoute, { params, body: { text } });
    if (options.json) print(plainJson(body, 2));
    else {
      print(...body.errors.map((problem) => problemLine(problem, 'error')));
      print(...body.warnings.map((problem) => problemLine(problem, 'warning')));
      note(`verdict: ${body.verdict}`);
    }
    return body.verdict === 'blocked' ? EXIT.failed : EXIT.done;
  },
});
