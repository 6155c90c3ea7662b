// The rules that OpenCode reads before every model call, as a copy: a session could put a pipe in the place of the file in
// its checkout, and OpenCode would wait for it for ever (measured, 1.18.33). Must not know turns. Source: A54 to A61, FE5.
import { constants, lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { RulesFile } from '../contract/adapter.ts';

/** Where the copy is, below the configuration folder. */
export const RULES_COPY = 'rules/AGENTS.md';

const NAMES = ['AGENTS.md', 'CLAUDE.md'];
const MAX_BYTES = 262_144;

/** The text of the rules file that the host found; null when it is not what the host saw any more. */
export const readRules = async (rules: RulesFile | null): Promise<string | null> => {
  if (rules === null) return null;
  try {
    const file = await open(rules.path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      const info = await file.stat();
      return info.isFile() && info.size <= MAX_BYTES ? await file.readFile('utf8') : null;
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
};

/** Puts the copy in place, or takes it away; OpenCode reads it before its next model call. */
export const writeRules = (configDirectory: string, text: string | null): void => {
  const path = join(configDirectory, RULES_COPY);
  if (text === null) {
    rmSync(path, { force: true });
    return;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.next`, text, { mode: 0o600 });
  renameSync(`${path}.next`, path);
};

/** Rules files of the folders above the workspace, which belong to the image, the outermost first. Source: A56. */
export const rulesAbove = (workspace: string): readonly string[] => {
  const found: string[] = [];
  for (let folder = dirname(workspace); ; folder = dirname(folder)) {
    const path = NAMES.map((name) => join(folder, name)).find(
      (candidate) => lstatSync(candidate, { throwIfNoEntry: false })?.isFile() === true,
    );
    if (path !== undefined) found.unshift(path);
    if (folder === dirname(folder)) return found;
  }
};
