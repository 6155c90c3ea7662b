// The skills of a session: the managed ones of the image and those of the project's copy, each checked.
// Must not know harnesses. Source: A43, A128, A129.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '#base/log.ts';
import { parseYaml } from '#base/yaml.ts';
import { MANAGED_PREFIX, type Skill } from '#daemon/harness/contract/skills.ts';
import { splitAgentFile } from '#schema/manifest/agent-file.ts';

const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const MAX_NAME = 64;
const MAX_DESCRIPTION = 1_024;
const MAX_SKILLS = 256;

/** The description in the text of a SKILL.md, or why it is no skill. Pure. */
export const readSkill = (
  directoryName: string,
  text: string,
): Readonly<{ description: string }> | Readonly<{ problem: string }> => {
  const parts = splitAgentFile(text);
  if (parts === undefined || parts.frontmatter === '') return { problem: 'SKILL.md has no frontmatter' };
  const { value, problems } = parseYaml(parts.frontmatter);
  if (problems.length > 0 || typeof value !== 'object' || value === null) {
    return { problem: 'the frontmatter of SKILL.md cannot be read' };
  }
  const { name, description } = value as Readonly<Record<string, unknown>>;
  if (name !== directoryName) return { problem: 'the name in SKILL.md is not that of its folder' };
  if (!NAME.test(directoryName) || directoryName.length > MAX_NAME) {
    return { problem: 'the name must be lower-case words with dashes between them, at most 64 characters' };
  }
  if (typeof description !== 'string' || description.trim() === '') return { problem: 'SKILL.md has no description' };
  return { description: description.trim().slice(0, MAX_DESCRIPTION) };
};

const skillsIn = (folder: string, managed: boolean, log: Logger): readonly Skill[] => {
  let names: readonly string[];
  try {
    names = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .sort();
  } catch {
    return [];
  }
  return names.slice(0, MAX_SKILLS).flatMap((name) => {
    const leaveOut = (reason: string): readonly Skill[] => {
      log.warn('a skill is left out', { skill: name, reason });
      return [];
    };
    if (name.startsWith(MANAGED_PREFIX) !== managed) return leaveOut(`names with ${MANAGED_PREFIX} are Beeuni's own`);
    try {
      const skill = readSkill(name, readFileSync(join(folder, name, 'SKILL.md'), 'utf8'));
      if ('problem' in skill) return leaveOut(skill.problem);
      return [{ name, description: skill.description, directory: join(folder, name), managed }];
    } catch {
      return leaveOut('SKILL.md cannot be read');
    }
  });
};

/** All skills, managed ones first. `projectSkills`: the copy of the project's `skills/`. Never throws. */
export const findSkills = (managedSkills: string, projectSkills: string, log: Logger): readonly Skill[] => [
  ...skillsIn(managedSkills, true, log),
  ...skillsIn(projectSkills, false, log),
];
