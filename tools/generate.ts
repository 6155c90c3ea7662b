// Writes every generated file of the tree. `make generate` runs it; `tools/verify.ts` compares without writing.
// Add a generator as a file in `tools/generators/` and its list to GENERATED_FILES.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { configFiles } from './generators/config.ts';
import { crdFiles } from './generators/crds.ts';
import type { GeneratedFile } from './generators/generated-file.ts';
import { lintRoomFiles } from './generators/lint-rooms.ts';
import { openApiFiles } from './generators/openapi.ts';
import { policyFiles } from './generators/policy.ts';
import { referenceFiles } from './generators/reference.ts';
import { roleFiles } from './generators/roles.ts';
import { valuesFiles } from './generators/values.ts';

/** Every generated file of the tree. */
export const GENERATED_FILES: readonly GeneratedFile[] = [
  ...crdFiles,
  ...policyFiles,
  ...referenceFiles,
  ...valuesFiles,
  ...openApiFiles,
  ...configFiles,
  ...roleFiles,
  ...lintRoomFiles,
];

/** The root of the repository. */
export const ROOT = join(import.meta.dirname, '..');

/** The text of a file of the tree; undefined when there is none. */
export async function textInTree(path: string): Promise<string | undefined> {
  return readFile(join(ROOT, path), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

/** Generated files whose text in the tree differs or is missing. */
export async function outdatedFiles(
  files: readonly GeneratedFile[] = GENERATED_FILES,
): Promise<readonly Readonly<{ path: string; text: string }>[]> {
  const texts = await Promise.all(files.map(async ({ path, text }) => ({ path, text: await text() })));
  const inTree = await Promise.all(texts.map(({ path }) => textInTree(path)));
  return texts.filter(({ text }, index) => inTree[index] !== text);
}

async function main(): Promise<void> {
  for (const { path, text } of await outdatedFiles()) {
    await mkdir(dirname(join(ROOT, path)), { recursive: true });
    await writeFile(join(ROOT, path), text);
    console.log(`wrote ${path}`);
  }
}

if (import.meta.main) await main();
