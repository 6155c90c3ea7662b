// `beeuni version`.
import { defineCommand, JSON_OPTION } from '../command.ts';
import { plainJson } from '../plain-text.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'print the version of this program',
  options: JSON_OPTION,
  run: async ({ io, options, print }) => {
    print(options.json ? plainJson({ version: io.version, node: process.versions.node }) : `beeuni ${io.version}`);
    return undefined;
  },
});
