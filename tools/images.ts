#!/usr/bin/env node
// Builds the two images of the product when their inputs have changed. `node tools/images.ts --help`.
import { existsSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheDir } from '#test/cluster/cache-dir.ts';
import { withLock } from '#test/cluster/lock.ts';
import { findEngine } from './images/engine.ts';
import { inputHash } from './images/inputs.ts';
import { npmSecrets } from './images/npm-secrets.ts';
import { removeOldOutputs } from './images/outputs.ts';

/** A built image. Equal inputs give an equal name. */
export interface BuiltImage {
  /** Name with tag, `localhost/<name>:<12 hex digits>`. */
  readonly image: string;
  /** What `importImage` of the test cluster takes: a docker archive, or a folder with an OCI layout. A Docker engine has the image as well. */
  readonly archive: string;
}

/** `control` is the operator and the control plane, `sandbox` the pod of a session. */
export interface BuiltImages {
  readonly control: BuiltImage;
  readonly sandbox: BuiltImage;
}

const root = join(import.meta.dirname, '..');
const recipes = {
  control: { repository: 'localhost/beeuni', dockerfile: 'Dockerfile' },
  sandbox: { repository: 'localhost/beeuni-sandbox', dockerfile: 'sandbox-image/Dockerfile' },
} as const;
type Recipe = (typeof recipes)[keyof typeof recipes];

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

async function ensureImage(recipe: Recipe, log: (line: string) => void): Promise<BuiltImage> {
  const engine = await findEngine();
  const dockerfilePath = join(root, recipe.dockerfile);
  const dockerfile = readFileSync(dockerfilePath, 'utf8');
  const hash = inputHash(root, dockerfile, engine.salt).slice(0, 12);
  const image = `${recipe.repository}:${hash}`;
  const prefix = `${recipe.repository.replace('localhost/', '')}-`;
  const output = join(cacheDir('images'), `${prefix}${hash}`);
  const archive = `${output}${engine.ending}`;
  if (existsSync(archive)) {
    const now = new Date();
    utimesSync(archive, now, now); // The oldest by use are removed first.
    return { image, archive };
  }
  const startedAt = performance.now();
  const secrets = await npmSecrets();
  try {
    await engine.build({ context: root, dockerfile, dockerfilePath, image, output, secretArgs: secrets.args }, log);
  } finally {
    secrets.remove();
  }
  removeOldOutputs(prefix);
  log(`${image}: built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  return { image, archive };
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
