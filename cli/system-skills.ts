// The skills that come with Beeuni, beside this program in the repository and in the sandbox image. Must not know who reads them.
// Source: A131.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseYaml } from '#base/yaml.ts';
import { CommandError, EXIT } from './failure.ts';

/** Folder of the skills. */
export const SKILLS_FOLDER = join(import.meta.dirname, '..', 'sandbox-image', 'skills');

/** One skill. `path`: its SKILL.md. */
export type SystemSkill = Readonly<{ name: string; description: string; path: string }>;

const descriptionOf = (text: string): string => {
  const head = /^---\n([^]*?)\n---\n/.exec(text)?.[1] ?? '';
  const value = parseYaml(head).value as Readonly<{ description?: unknown }> | undefined;
  return typeof value?.description === 'string' ? value.description : '';
};

/** All skills, by name. Errors: CommandError when this program lies alone. */
export const listSystemSkills = (): readonly SystemSkill[] => {
  try {
    return readdirSync(SKILLS_FOLDER, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => {
        const path = join(SKILLS_FOLDER, name, 'SKILL.md');
        return { name, description: descriptionOf(readFileSync(path, 'utf8')), path };
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    throw new CommandError(EXIT.notFound, `the skills of Beeuni are not in ${SKILLS_FOLDER}`, (error as Error).message);
  }
};

/** One skill. Errors: CommandError (not found). */
export const findSystemSkill = (name: string): SystemSkill => {
  const found = listSystemSkills().find((skill) => skill.name === name);
  if (found !== undefined) return found;
  throw new CommandError(EXIT.notFound, `there is no system skill ${name}`, 'beeuni system-skills list');
};
