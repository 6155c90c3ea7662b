// Images in the node's containerd: what is there, and what comes in. Knows nothing of how they are built.
import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ImageIdentity, readImageIdentity, singleProgramImage } from './image-archive.ts';
import { enter } from './node-state.ts';
import { type ProcessIdentity, run } from './process.ts';

const ctr = ['ctr', '--namespace', 'k8s.io', 'images'];

/** Makes a docker archive's image known to the node. `imported` is false when the node had the same image under the same names. */
export async function importArchive(
  init: ProcessIdentity,
  archivePath: string,
): Promise<ImageIdentity & { readonly imported: boolean }> {
  const identity = readImageIdentity(archivePath);
  if (hasImage(await listImages(init), identity)) return { ...identity, imported: false };
  await run('nsenter', [...enter(init), ...ctr, 'import', archivePath]);
  return { ...identity, imported: true };
}

/** Makes an image of the `kube` program known to the node under `tag`, unless it has one. */
export async function importKubeImage(init: ProcessIdentity, kube: string, tag: string): Promise<void> {
  if ((await listImages(init)).has(tag)) return;
  const child = spawn('nsenter', [...enter(init), ...ctr, 'import', '-'], { stdio: ['pipe', 'ignore', 'pipe'] });
  const words: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => words.push(chunk));
  const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
  const image = singleProgramImage({ path: kube, name: 'kube', tag });
  const written = pipeline(Readable.from(image, { objectMode: false }), child.stdin).catch((err: unknown) => err);
  const code = await ended;
  if (code !== 0) throw new Error(`the image ${tag} was not imported: ${Buffer.concat(words)}`);
  const writeError = await written;
  if (writeError) throw writeError;
}

/** Digests of the node's images by reference. containerd also names each image by its id. */
async function listImages(init: ProcessIdentity): Promise<Map<string, string>> {
  const lines = (await run('nsenter', [...enter(init), ...ctr, 'list'])).split('\n').slice(1);
  return new Map(
    lines.flatMap((line) => {
      const [reference, , digest] = line.split(/\s+/);
      return reference && digest ? [[reference, digest] as const] : [];
    }),
  );
}

function hasImage(images: ReadonlyMap<string, string>, wanted: ImageIdentity): boolean {
  const digest = images.get(wanted.id);
  return digest !== undefined && wanted.tags.every((tag) => images.get(tag) === digest);
}
