// Container images as `docker save` writes them: makes one that holds a single program, reads the id of any.
import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { z } from 'zod';
import { tarEnd, tarEntries, tarHeader, tarPadding } from './tar.ts';

/** Id and names of an image. `id` is the digest of its configuration, `sha256:<64 hex digits>`; container runtimes call it the image id. */
export interface ImageIdentity {
  readonly id: string;
  readonly tags: readonly string[];
}

const manifestSchema = z.tuple([z.object({ Config: z.string(), RepoTags: z.array(z.string()).nullish() })]);

/** Identity of the one image in a docker archive. Throws when the file is none, or holds several. */
export function readImageIdentity(archivePath: string): ImageIdentity {
  const manifest = tarEntries(archivePath).get('manifest.json');
  if (!manifest) throw new Error(`${archivePath} has no manifest.json: it is not a docker archive`);
  const [image] = manifestSchema.parse(JSON.parse(manifest.read().toString()));
  // Older writers name the file `<hex>.json`, newer ones `blobs/sha256/<hex>`.
  const hex = /([0-9a-f]{64})(\.json)?$/.exec(image.Config)?.[1];
  if (!hex) throw new Error(`${archivePath}: cannot tell the image id from ${image.Config}`);
  return { id: `sha256:${hex}`, tags: image.RepoTags ?? [] };
}

/** Bytes of a docker archive whose image has one file, `/<name>`, as its program. Reads the file twice: its layer's digest comes before its bytes. */
export async function* singleProgramImage(program: {
  readonly path: string;
  readonly name: string;
  readonly tag: string;
}): AsyncGenerator<Uint8Array> {
  const sizeBytes = statSync(program.path).size;
  const layerHeader = tarHeader(program.name, sizeBytes, 0o755);
  const layerEnd = Buffer.concat([tarPadding(sizeBytes), tarEnd]);

  const hash = createHash('sha256').update(layerHeader);
  for await (const chunk of createReadStream(program.path)) hash.update(chunk);
  const layerDigest = hash.update(layerEnd).digest('hex');

  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Entrypoint: [`/${program.name}`], Cmd: ['pause'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${layerDigest}`] },
      history: [{ created: '1970-01-01T00:00:00Z', created_by: program.name }],
      created: '1970-01-01T00:00:00Z',
    }),
  );
  const configName = `${createHash('sha256').update(config).digest('hex')}.json`;
  const layerName = `${layerDigest}.tar`;
  const manifest = Buffer.from(JSON.stringify([{ Config: configName, RepoTags: [program.tag], Layers: [layerName] }]));

  for (const [name, content] of [
    [configName, config],
    ['manifest.json', manifest],
  ] as const) {
    yield tarHeader(name, content.length, 0o644);
    yield content;
    yield tarPadding(content.length);
  }
  const layerBytes = layerHeader.length + sizeBytes + layerEnd.length;
  yield tarHeader(layerName, layerBytes, 0o644);
  yield layerHeader;
  yield* createReadStream(program.path);
  yield layerEnd;
  yield tarPadding(layerBytes);
  yield tarEnd;
}
