// Compiled code of the daemon, filled by the command that fills it in the image: without it the daemon carries a compiler of
// TypeScript, 35 MB that no sandbox has. For ../harness.ts. Source: docs/decisions/0040.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { splitStages } from '#tools/images/stages.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

/** Fills the folder and gives back the environment that makes a daemon use it. */
export const compileDaemon = async (folder: string): Promise<Readonly<Record<string, string>>> => {
  const environment = { NODE_COMPILE_CACHE: folder, NODE_COMPILE_CACHE_PORTABLE: '1' };
  const { compile } = splitStages(readFileSync(`${ROOT}/sandbox-image/Dockerfile`, 'utf8'));
  await promisify(execFile)('sh', ['-c', compile.replaceAll('/opt/beeuni', ROOT)], {
    env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: folder, ...environment },
  });
  return environment;
};
