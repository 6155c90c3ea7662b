// Compares every generated file with the tree, writes nothing, and fails when one differs or is missing.
import { GENERATED_FILES, outdatedFiles } from './generate.ts';

const outdated = await outdatedFiles();
for (const { path } of outdated) console.error(`${path} is not what schema/ generates; run: make generate`);
if (outdated.length === 0) console.log(`${GENERATED_FILES.length} generated files are up to date`);
process.exitCode = outdated.length === 0 ? 0 : 1;
