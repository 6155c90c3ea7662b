// The machine's npm configuration and certificate authorities as build secrets: used by `npm ci` in a build, never part of an image.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '#test/cluster/process.ts';

/** Arguments `--secret …` for docker and buildah, and what removes the files that they name. */
export interface NpmSecrets {
  readonly args: readonly string[];
  remove(): void;
}

/** Secrets `npmrc` and, where the machine has its own authorities, `authorities`. */
export async function npmSecrets(): Promise<NpmSecrets> {
  const setting = async (name: string): Promise<string> => {
    const value = (await run('npm', ['config', 'get', name], { cwd: tmpdir() })).trim();
    return value === 'null' || value === 'undefined' ? '' : value;
  };
  const [globalFile, userFile, authorityFile] = await Promise.all([
    setting('globalconfig'),
    setting('userconfig'),
    setting('cafile'),
  ]);
  const authorities = [authorityFile, process.env['NODE_EXTRA_CA_CERTS'] ?? ''].find(
    (path) => path !== '' && existsSync(path),
  );
  const lines = [globalFile, userFile]
    .filter((path) => path !== '' && existsSync(path))
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
    // These name files and programs of this machine.
    .filter((line) => !/^\s*(cafile|prefix|cache|nodedir|globalconfig|userconfig)\s*=/.test(line));
  if (authorities !== undefined) lines.push('cafile=/run/secrets/authorities');

  const dir = mkdtempSync(join(tmpdir(), 'beeuni-npm-'));
  const npmrc = join(dir, 'npmrc');
  writeFileSync(npmrc, `${lines.join('\n')}\n`, { mode: 0o600 });
  const args = ['--secret', `id=npmrc,src=${npmrc}`];
  if (authorities !== undefined) args.push('--secret', `id=authorities,src=${authorities}`);
  return { args, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
