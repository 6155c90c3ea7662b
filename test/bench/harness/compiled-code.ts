// The daemon as the image has it, one program and its compiled code, made by the command that makes them in the image: from the
// sources it would carry a compiler of TypeScript, 35 MB that no sandbox has. For ../harness.ts. Sources: docs/decisions/0040, 0054.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { splitStages } from '#tools/images/stages.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

/** What was made; `environment` makes a process use the compiled code. */
export type CompiledDaemon = Readonly<{ main: string; environment: Readonly<Record<string, string>> }>;

/** Makes both below the folder. */
export const compileDaemon = async (folder: string): Promise<CompiledDaemon> => {
  const [bundle, cache] = [join(folder, 'bundle'), join(folder, 'cache')];
  mkdirSync(cache, { recursive: true });
  const environment = { NODE_COMPILE_CACHE: cache, NODE_COMPILE_CACHE_PORTABLE: '1' };
  const { compile } = splitStages(readFileSync(`${ROOT}/sandbox-image/Dockerfile`, 'utf8'));
  const command = compile.replaceAll('/opt/beeuni/bundle', bundle).replaceAll('/opt/beeuni', ROOT);
  await promisify(execFile)('sh', ['-c', command], {
    env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: folder, ...environment },
  });
  return { main: join(bundle, 'beeunid.mjs'), environment };
};
