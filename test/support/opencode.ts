// Where the real OpenCode is, or why the tests that need it cannot run. Must not know what is tested.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PLACES = ['../../sandbox-image/programs/node_modules', '../../sandbox-image/node_modules'].map((folder) =>
  fileURLToPath(new URL(`${folder}/opencode-linux-x64-baseline/bin/opencode`, import.meta.url)),
);

/** Path of the program; undefined when it is not installed. */
export const opencodePath = (): string | undefined => PLACES.find((path) => existsSync(path));

const onPath = (program: string): boolean => spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;

/** Why harness tests cannot run here; undefined when they can. For the `skip` option of a test. */
export const whyNoOpencode = (): string | undefined => {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'the harness programs are for Linux on x86-64';
  if (opencodePath() === undefined) return 'OpenCode is not installed; run tools/bootstrap.sh harness';
  for (const program of ['git', 'rg']) if (!onPath(program)) return `${program} is not on PATH`;
  return undefined;
};
