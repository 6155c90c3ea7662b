// `beeuni system-skills get`.
import { readFileSync } from 'node:fs';
import { defineCommand } from '../command.ts';
import { findSystemSkill } from '../system-skills.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'print a skill that comes with Beeuni',
  arguments: [{ name: 'NAME', summary: 'name of the skill' }],
  options: {},
  run: async ({ args, print }) => {
    print(readFileSync(findSystemSkill(args[0] ?? '').path, 'utf8').trimEnd());
    return undefined;
  },
});
