// Puts the fuzzer for OpenAPI documents into a cache folder, once. Looks for Python and PyPI, and says what is missing.
// Must not know any route.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '#test/cluster/cache-dir.ts';

/** Pinned: another version finds other things. */
const PACKAGES = ['schemathesis==4.32.5', 'openapi-spec-validator==0.9.0'] as const;
const INSTALL_LIMIT_MS = 300_000;
const FOLDER = join(cacheDir('fuzzer'), PACKAGES.join('+').replaceAll('==', '-'));

/** The programs, or one sentence about what is missing. */
export type Fuzzer = Readonly<{ schemathesis: string; validator: string }> | Readonly<{ missing: string }>;

const run = (program: string, args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore', timeout: INSTALL_LIMIT_MS }).status === 0;

/** Finds or installs the fuzzer. Blocks for as long as an installation takes, 5 min at most. */
export const findFuzzer = (): Fuzzer => {
  const done = join(FOLDER, 'installed');
  const bin = join(FOLDER, 'bin');
  const programs = { schemathesis: join(bin, 'schemathesis'), validator: join(bin, 'openapi-spec-validator') };
  if (existsSync(done)) return programs;
  if (process.env['BEEUNI_OFFLINE'] === '1')
    return { missing: 'the fuzzer is not installed and BEEUNI_OFFLINE is set' };
  if (!run('python3', ['-c', 'import sys, venv; sys.exit(sys.version_info < (3, 10))'])) {
    return { missing: 'python3 of at least 3.10 with the module venv was not found' };
  }
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  if (!run('python3', ['-m', 'venv', FOLDER])) return { missing: 'python3 could not make a virtual environment' };
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '20'];
  if (!run(join(bin, 'python'), [...pip, ...PACKAGES])) {
    return { missing: `${PACKAGES.join(' and ')} could not be installed from PyPI` };
  }
  writeFileSync(done, '');
  return programs;
};
