// `beeuni system-skills path`.
import { dirname } from 'node:path';
import { defineCommand } from '../command.ts';
import { findSystemSkill, SKILLS_FOLDER } from '../system-skills.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'print the folder of a skill that comes with Beeuni, or of all',
  arguments: [{ name: 'NAME', summary: 'name of the skill', optional: true }],
  options: {},
  run: async ({ args, print }) => {
    print(args[0] === undefined ? SKILLS_FOLDER : dirname(findSystemSkill(args[0]).path));
    return undefined;
  },
});
