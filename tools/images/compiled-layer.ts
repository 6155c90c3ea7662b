// The layer with what is made of the sources, compiled code and the one program of them where there is one, by this machine's
// Node, which the image has too: what the stage `compiled` of a Dockerfile does where there is no Docker to run it.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { blobPath, type Descriptor } from '#test/cluster/oci-layout.ts';
import { run } from '#test/cluster/process.ts';

/** Where the sources are in an image. */
const PREFIX = 'opt/beeuni';
/** The user of our images: Node names the folder of compiled code for the user who reads it. */
const USER = 1000;

/** Compiles `files` of `root` by the shell command `compile` and leaves the layer as a blob in `work`. */
export async function compiledLayer(
  root: string,
  files: readonly string[],
  compile: string,
  work: string,
): Promise<Descriptor> {
  const tree = join(work, PREFIX);
  for (const file of files) {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    cpSync(join(root, file), join(tree, file));
  }
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  const cache = join(tree, 'cache');
  await run('sh', ['-c', compile.replaceAll(`/${PREFIX}`, tree)], {
    env: {
      PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
      HOME: work,
      NODE_COMPILE_CACHE: cache,
      NODE_COMPILE_CACHE_PORTABLE: '1',
    },
  });
  for (const folder of readdirSync(cache)) {
    renameSync(join(cache, folder), join(cache, folder.replace(/-\d+$/, `-${USER}`)));
  }
  const tar = join(work, 'compiled.tar');
  const owner = [`--owner=${USER}`, `--group=${USER}`, '--numeric-owner', '--mode=a+rX,go-w'];
  const made = ['cache', 'bundle'].map((name) => `${PREFIX}/${name}`).filter((path) => existsSync(join(work, path)));
  await run('tar', ['--sort=name', '--mtime=@0', ...owner, '-cf', tar, '-C', work, ...made]);
  const digest = `sha256:${createHash('sha256').update(readFileSync(tar)).digest('hex')}`;
  const { size } = statSync(tar);
  renameSync(tar, blobPath(work, digest));
  return { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest, size };
}
