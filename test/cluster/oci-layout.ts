// A container image as a folder (OCI image layout): reading it, and streaming it to containerd without what containerd has.
// Layers are plain tar files, so that equal layers of two images are equal files.
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { ImageIdentity } from './image-archive.ts';
import { tarEnd, tarHeader, tarPadding } from './tar.ts';

/** Reference to a blob: `digest` is `sha256:<64 hex digits>`. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const descriptor = z.object({ mediaType: z.string(), digest: z.string(), size: z.number() });
const indexSchema = z.object({
  manifests: z.tuple([descriptor.extend({ annotations: z.record(z.string(), z.string()) })]),
});
const manifestSchema = z.object({ config: descriptor, layers: z.array(descriptor) });

/** Annotation with the full name of an image, as containerd reads it. */
export const imageNameAnnotation = 'io.containerd.image.name';

/** The one image of a layout folder: identity and every blob, the manifest first. Throws when the folder is no such layout. */
export function readLayout(dir: string): ImageIdentity & { readonly blobs: readonly Descriptor[] } {
  const index = indexSchema.parse(JSON.parse(readFileSync(join(dir, 'index.json'), 'utf8')));
  const [manifestDescriptor] = index.manifests;
  const manifest = manifestSchema.parse(JSON.parse(readFileSync(blobPath(dir, manifestDescriptor.digest), 'utf8')));
  const tag = manifestDescriptor.annotations[imageNameAnnotation];
  if (tag === undefined) throw new Error(`${dir} does not name its image`);
  return { id: manifest.config.digest, tags: [tag], blobs: [manifestDescriptor, manifest.config, ...manifest.layers] };
}

/** Path of a blob in a layout folder. */
export function blobPath(dir: string, digest: string): string {
  return join(dir, 'blobs/sha256', digest.replace('sha256:', ''));
}

/** Bytes of a tar archive of the layout, without the blobs whose digests are in `known`. */
export async function* layoutArchive(dir: string, known: ReadonlySet<string>): AsyncGenerator<Uint8Array> {
  const files = readLayout(dir).blobs.filter((blob) => !known.has(blob.digest));
  const unique = [...new Set(files.map((blob) => blob.digest.replace('sha256:', 'blobs/sha256/')))];
  for (const name of ['oci-layout', 'index.json', ...unique]) {
    const path = join(dir, name);
    const sizeBytes = statSync(path).size;
    yield tarHeader(name, sizeBytes, 0o644);
    yield* createReadStream(path);
    yield tarPadding(sizeBytes);
  }
  yield tarEnd;
}
