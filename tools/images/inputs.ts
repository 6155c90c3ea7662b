// Which files an image is made of, and their hash. Reads the sources that the Dockerfile itself names, so there is one list.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Sources of the COPY lines of a Dockerfile that come from the build context, in order, each once. Pure. */
export function copiedSources(dockerfile: string): string[] {
  const sources = dockerfile
    .split('\n')
    .filter((line) => /^COPY\s/.test(line) && !line.includes('--from='))
    .flatMap((line) => line.trim().split(/\s+/).slice(1, -1))
    .filter((word) => !word.startsWith('--'));
  return [...new Set(sources)];
}

/** Whether a path is left out by .dockerignore: installed packages, tests and their golden files. Pure. */
export function isIgnored(path: string): boolean {
  return path.split('/').some((part) => part === 'node_modules' || part === 'golden') || path.endsWith('.test.ts');
}

/** Files below `root` that the Dockerfile copies, sorted. Throws when one of its sources is missing. */
export function inputFiles(root: string, dockerfile: string): string[] {
  const walk = (path: string): string[] => {
    if (isIgnored(path)) return [];
    if (!statSync(join(root, path)).isDirectory()) return [path];
    return readdirSync(join(root, path)).flatMap((entry) => walk(`${path}/${entry}`));
  };
  return copiedSources(dockerfile)
    .flatMap((source) => {
      if (!existsSync(join(root, source))) throw new Error(`the Dockerfile copies ${source}, which is missing`);
      return walk(source);
    })
    .sort();
}

/** Hash of the Dockerfile, its input files and `salt`. 64 hex digits. */
export function inputHash(root: string, dockerfile: string, salt: string): string {
  const hash = createHash('sha256').update(`${salt}\0`).update(`${dockerfile}\0`);
  for (const file of inputFiles(root, dockerfile)) {
    const content = readFileSync(join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}
