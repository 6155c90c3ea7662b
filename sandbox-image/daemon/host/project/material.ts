// What the project brings for its harness: a copy of the base commit's tools, skills and harness folder. The working tree
// is never read for it, so a session cannot change what it runs by. Must not know any single harness.
// Source: A45, A57, A69 to A71, A128, A129, docs/decisions/0034.
import { join } from 'node:path';
import type { Logger } from '#base/log.ts';
import type { HarnessPackage } from '#daemon/harness/contract/packages.ts';
import type { Skill } from '#daemon/harness/contract/skills.ts';
import type { ClaimAnswer } from '#schema/wire/claim.ts';
import { copyBaseFiles } from '../git/base-files.ts';
import type { RunGit } from '../git/run-git.ts';
import { findPackages, isFolder, packagePath } from './packages.ts';
import { findSkills } from './skills.ts';

/** What is there. `sourceDirectory`: the copy, with the repository's own layout. */
export type ProjectMaterial = Readonly<{
  sourceDirectory: string;
  configDirectory: string | null;
  skills: readonly Skill[];
  packages: readonly HarnessPackage[];
  /** Why nothing of the project is used; null: it is used. */
  fallbackReason: string | null;
}>;

/** What it is made from. */
export type MaterialRequest = Readonly<{
  claim: Pick<ClaimAnswer, 'harness' | 'baseCommit' | 'projectTools' | 'configDirs' | 'piPackages'>;
  workspace: string;
  searchPath: string;
  /** Where the copy goes; replaced. */
  target: string;
  /** Folder of the image's own skills. */
  managedSkills: string;
  signal: AbortSignal;
}>;

/** Places of the harness's folder, the first that exists counts. Source: A69, A70, A73. */
export const configDirectoriesOf = (claim: MaterialRequest['claim']): readonly string[] => {
  const { harness, configDirs } = claim;
  if (harness !== 'opencode' && harness !== 'pi') return [];
  const named = configDirs[harness];
  return [...(named === null ? [] : [named]), `harnesses/${harness}`, `.beeuni/${harness}`].map((path) =>
    path.replace(/^\.\//, '').replace(/\/+$/, ''),
  );
};

/** What is copied: whole folders, so that a module finds its neighbours; of a module at the root only itself. */
export const copiedPaths = (claim: MaterialRequest['claim']): readonly string[] => {
  const tools = claim.projectTools.map(({ path }) => (path.includes('/') ? `${path.split('/')[0]}/` : path));
  const packages = (claim.harness === 'pi' ? claim.piPackages : []).flatMap(({ source }) => packagePath(source) ?? []);
  const folders = ['skills', ...configDirectoriesOf(claim), ...packages].map((path) => `${path}/`);
  return [...new Set([...tools, ...folders])].sort();
};

/** Makes the copy and looks at it. A project whose copy cannot be made gets none of it, and the log says why. Never rejects. */
export const prepareMaterial = async (run: RunGit, request: MaterialRequest, log: Logger): Promise<ProjectMaterial> => {
  const { claim, target, workspace, searchPath, signal, managedSkills } = request;
  try {
    const paths = copiedPaths(claim);
    await copyBaseFiles(run, { workspace, searchPath, commit: claim.baseCommit, paths, target, signal }, log);
  } catch (error) {
    log.error('the configuration of the project cannot be copied and is left out', { err: error });
    return {
      sourceDirectory: target,
      configDirectory: null,
      skills: findSkills(managedSkills, '/nonexistent', log),
      packages: findPackages(claim, '/nonexistent', log),
      fallbackReason: 'the configuration of the project could not be copied; the log of the sandbox says why',
    };
  }
  const found = configDirectoriesOf(claim).find((path) => isFolder(join(target, path)));
  return {
    sourceDirectory: target,
    configDirectory: found === undefined ? null : join(target, found),
    skills: findSkills(managedSkills, join(target, 'skills'), log),
    packages: findPackages(claim, target, log),
    fallbackReason: null,
  };
};
