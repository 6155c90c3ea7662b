// Makes OCI layout folders from what buildah builds, and joins two images: sources on top of dependencies.
// Files that are equal are one file on disk (hard links), so a change of sources writes only the sources.
import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { blobPath, type Descriptor, imageNameAnnotation, readLayout } from '#test/cluster/oci-layout.ts';
import { tarEntries } from '#test/cluster/tar.ts';

const configSchema = z.looseObject({
  architecture: z.string(),
  os: z.string(),
  config: z.looseObject({ Env: z.array(z.string()).optional() }).optional(),
  rootfs: z.object({ type: z.literal('layers'), diff_ids: z.array(z.string()) }),
  history: z.array(z.unknown()).optional(),
});

/** Configuration of an image: what its processes get, and the digests of its layers in order. */
export type ImageConfig = z.output<typeof configSchema>;

const archiveManifestSchema = z.tuple([z.object({ Config: z.string(), Layers: z.array(z.string()) })]);

/** Layers of an image, lowest first, and its configuration. */
export interface ImageParts {
  readonly config: ImageConfig;
  readonly layers: readonly Descriptor[];
}

/** Parts of the image in a docker archive; its layers are copied into the folder `dir` as blobs. */
export async function unpackArchive(archivePath: string, dir: string): Promise<ImageParts> {
  const entries = tarEntries(archivePath);
  const json = (name: string): unknown => {
    const entry = entries.get(name);
    if (!entry) throw new Error(`${archivePath} lacks ${name}: it is not a docker archive`);
    return JSON.parse(entry.read().toString());
  };
  const [manifest] = archiveManifestSchema.parse(json('manifest.json'));
  const config = configSchema.parse(json(manifest.Config));
  mkdirSync(join(dir, 'blobs/sha256'), { recursive: true });
  const layers: Descriptor[] = [];
  for (const [position, name] of manifest.Layers.entries()) {
    const entry = entries.get(name);
    const digest = config.rootfs.diff_ids[position];
    if (!entry || digest === undefined) throw new Error(`${archivePath} lacks the layer ${name}`);
    await entry.copyTo(blobPath(dir, digest));
    layers.push({ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest, size: entry.sizeBytes });
  }
  return { config, layers };
}

/** Parts of the image in a layout folder. */
export function readParts(dir: string): ImageParts {
  const { id, blobs } = readLayout(dir);
  return { config: configSchema.parse(JSON.parse(readFileSync(blobPath(dir, id), 'utf8'))), layers: blobs.slice(2) };
}

/** The image that `FROM lower` and then the steps of `upper` would give, where `upper` was built on nothing. Pure. */
export function joinParts(lower: ImageParts, upper: ImageParts): ImageParts {
  const environment = new Map(
    [...(lower.config.config?.Env ?? []), ...(upper.config.config?.Env ?? [])].map((line) => [
      line.split('=', 1)[0],
      line,
    ]),
  );
  return {
    config: {
      ...upper.config,
      config: { ...lower.config.config, ...upper.config.config, Env: [...environment.values()] },
      rootfs: { type: 'layers', diff_ids: [...lower.config.rootfs.diff_ids, ...upper.config.rootfs.diff_ids] },
      history: [...(lower.config.history ?? []), ...(upper.config.history ?? [])],
    },
    layers: [...lower.layers, ...upper.layers],
  };
}

/** An image with one layer more on top. Pure. */
export function addLayer(parts: ImageParts, layer: Descriptor, reason: string): ImageParts {
  const { config, layers } = parts;
  return {
    config: {
      ...config,
      rootfs: { type: 'layers', diff_ids: [...config.rootfs.diff_ids, layer.digest] },
      history: [...(config.history ?? []), { created_by: reason }],
    },
    layers: [...layers, layer],
  };
}

/** Writes a layout folder at once: it is complete, or missing. Layers are linked from the folders in `from`. */
export function writeLayout(dir: string, image: string, parts: ImageParts, from: readonly string[]): void {
  const unfinished = `${dir}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(join(unfinished, 'blobs/sha256'), { recursive: true });
  for (const { digest } of parts.layers) {
    const source = from.map((folder) => blobPath(folder, digest)).find((path) => existsSync(path));
    if (source === undefined) throw new Error(`no folder has the layer ${digest}`);
    if (!existsSync(blobPath(unfinished, digest))) linkSync(source, blobPath(unfinished, digest));
  }
  const write = (value: unknown, mediaType: string): Descriptor => {
    const bytes = Buffer.from(JSON.stringify(value));
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    writeFileSync(blobPath(unfinished, digest), bytes);
    return { mediaType, digest, size: bytes.length };
  };
  const config = write(parts.config, 'application/vnd.oci.image.config.v1+json');
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = write({ schemaVersion: 2, mediaType, config, layers: parts.layers }, mediaType);
  const annotations = { [imageNameAnnotation]: image, 'org.opencontainers.image.ref.name': image.split(':').at(-1) };
  writeFileSync(
    join(unfinished, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }),
  );
  writeFileSync(join(unfinished, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  rmSync(dir, { recursive: true, force: true });
  renameSync(unfinished, dir);
}
