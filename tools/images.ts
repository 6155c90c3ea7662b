#!/usr/bin/env node
// Builds the two images of the product when their inputs have changed. `node tools/images.ts --help`.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheDir } from '#test/cluster/cache-dir.ts';
import { withLock } from '#test/cluster/lock.ts';
import { findEngine } from './images/engine.ts';
import { inputHash } from './images/inputs.ts';
import { npmSecrets } from './images/npm-secrets.ts';

/** A built image: its name with tag, and its docker archive. Equal inputs give an equal name. */
export interface BuiltImage {
  readonly image: string;
  readonly archive: string;
}

/** `control` is the operator and the control plane, `sandbox` the pod of a session. */
export interface BuiltImages {
  readonly control: BuiltImage;
  readonly sandbox: BuiltImage;
}

const root = join(import.meta.dirname, '..');
const archivesKept = 2;
const recipes = {
  control: { repository: 'localhost/beeuni', dockerfile: 'Dockerfile' },
  sandbox: { repository: 'localhost/beeuni-sandbox', dockerfile: 'sandbox-image/Dockerfile' },
} as const;

/** Both images, built first where their inputs have changed since. From nothing about 3 minutes on 2 cores, else at once. */
export async function ensureImages(log: (line: string) => void): Promise<BuiltImages> {
  const lock = join(cacheDir('images'), 'lock');
  return await withLock(
    lock,
    async () => {
      const control = await ensureImage(recipes.control, log);
      const sandbox = await ensureImage(recipes.sandbox, log);
      return { control, sandbox };
    },
    () => log('images: another process builds them, waiting'),
  );
}

async function ensureImage(
  recipe: (typeof recipes)[keyof typeof recipes],
  log: (line: string) => void,
): Promise<BuiltImage> {
  const engine = await findEngine();
  const dockerfilePath = join(root, recipe.dockerfile);
  const tag = inputHash(root, readFileSync(dockerfilePath, 'utf8'), engine.salt).slice(0, 12);
  const image = `${recipe.repository}:${tag}`;
  const prefix = `${recipe.repository.replace('localhost/', '')}-`;
  const archive = join(cacheDir('images'), `${prefix}${tag}.tar`);
  if (existsSync(archive)) {
    const now = new Date();
    utimesSync(archive, now, now);
    return { image, archive };
  }
  const startedAt = performance.now();
  const secrets = await npmSecrets();
  const unfinished = `${archive}.new`;
  try {
    await engine.build(
      { context: root, dockerfilePath, tag: image, archivePath: unfinished, secretArgs: secrets.args },
      log,
    );
    renameSync(unfinished, archive);
  } finally {
    secrets.remove();
    rmSync(unfinished, { force: true });
  }
  removeOldArchives(prefix);
  log(`${image}: built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  return { image, archive };
}

/** Keeps the newest archives of one image, by time of last use. */
function removeOldArchives(prefix: string): void {
  const dir = cacheDir('images');
  const archives = readdirSync(dir)
    .filter((file) => file.startsWith(prefix) && /^[0-9a-f]{12}\.tar$/.test(file.slice(prefix.length)))
    .map((file) => ({ path: join(dir, file), usedMs: statSync(join(dir, file)).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const archive of archives.slice(archivesKept)) rmSync(archive.path);
}

if (import.meta.main) {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const { values } = parseArgs({
    options: { json: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) {
    process.stdout.write(
      'Builds both images when their inputs have changed.\n\nusage: node tools/images.ts [--json]\n',
    );
  } else {
    try {
      const images = await ensureImages(say);
      const text = Object.entries(images).map(([name, { image, archive }]) => `${name}\t${image}\t${archive}`);
      process.stdout.write(`${values.json ? JSON.stringify(images) : text.join('\n')}\n`);
    } catch (err) {
      for (let fault: unknown = err; fault instanceof Error; fault = fault.cause) say(fault.message);
      process.exitCode = 1;
    }
  }
}
