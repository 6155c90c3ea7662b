// Images in the node's containerd: what is there, and what comes in. Knows nothing of how they are built.
import { spawn } from 'node:child_process';
import { createReadStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ImageIdentity, readImageIdentity, singleProgramImage } from './image-archive.ts';
import { enter } from './node-state.ts';
import { layoutArchive, readLayout } from './oci-layout.ts';
import { type ProcessIdentity, run } from './process.ts';

const ctr = ['ctr', '--namespace', 'k8s.io'];

/**
 * Makes an image known to the node: a docker archive, or a folder with an OCI layout, of which only layers are sent that
 * the node lacks. `imported` is false when the node had the same image under the same names.
 */
export async function importArchive(
  init: ProcessIdentity,
  path: string,
): Promise<ImageIdentity & { readonly imported: boolean }> {
  const isLayout = statSync(path).isDirectory();
  const { id, tags } = isLayout ? readLayout(path) : readImageIdentity(path);
  if (hasImage(await listImages(init), { id, tags })) return { id, tags, imported: false };
  await importStream(init, isLayout ? layoutArchive(path, await listBlobs(init)) : createReadStream(path));
  return { id, tags, imported: true };
}

/** Makes an image of the `kube` program known to the node under `tag`, unless it has one. */
export async function importKubeImage(init: ProcessIdentity, kube: string, tag: string): Promise<void> {
  if ((await listImages(init)).has(tag)) return;
  await importStream(init, singleProgramImage({ path: kube, name: 'kube', tag }));
}

async function importStream(init: ProcessIdentity, archive: AsyncIterable<Uint8Array>): Promise<void> {
  const child = spawn('nsenter', [...enter(init), ...ctr, 'images', 'import', '-'], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const words: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => words.push(chunk));
  const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
  const written = pipeline(Readable.from(archive, { objectMode: false }), child.stdin).catch((err: unknown) => err);
  const code = await ended;
  if (code !== 0) throw new Error(`an image was not imported: ${Buffer.concat(words).toString()}`);
  const writeError = await written;
  if (writeError) throw writeError;
}

/** Digests of everything in the node's content store. */
async function listBlobs(init: ProcessIdentity): Promise<Set<string>> {
  return new Set(
    (await run('nsenter', [...enter(init), ...ctr, 'content', 'list', '--quiet']))
      .split('\n')
      .filter((line) => line !== ''),
  );
}

/** Digests of the node's images by reference. containerd also names each image by its id. */
async function listImages(init: ProcessIdentity): Promise<Map<string, string>> {
  const lines = (await run('nsenter', [...enter(init), ...ctr, 'images', 'list'])).split('\n').slice(1);
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
