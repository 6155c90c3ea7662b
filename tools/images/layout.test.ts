// Joining an image of sources to an image of dependencies, and what is written of it.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { blobPath, layoutArchive, readLayout } from '#test/cluster/oci-layout.ts';
import { tarEntries } from '#test/cluster/tar.ts';
import { addLayer, type ImageParts, joinParts, readParts, writeLayout } from './layout.ts';

const digestOf = (letter: string): string => `sha256:${letter.repeat(64)}`;

const parts = (letter: string, config: Record<string, unknown> & { Env: string[] }): ImageParts => ({
  config: {
    architecture: 'amd64',
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: [digestOf(letter)] },
    history: [{ created_by: letter }],
  },
  layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: digestOf(letter), size: 1 }],
});

const lower = parts('a', { Env: ['PATH=/bin', 'KEPT=1'], User: '1000', WorkingDir: '/lower' });
const upper = parts('b', { Env: ['PATH=/usr/bin', 'NEW=1'], WorkingDir: '/upper', Cmd: ['run'] });

describe('image layout', () => {
  test('sources lie on top, and what they do not set comes from below', () => {
    const joined = joinParts(lower, upper);
    assert.deepEqual(joined.config.rootfs.diff_ids, [digestOf('a'), digestOf('b')]);
    assert.deepEqual(joined.config.config, {
      Env: ['PATH=/usr/bin', 'KEPT=1', 'NEW=1'],
      User: '1000',
      WorkingDir: '/upper',
      Cmd: ['run'],
    });
    assert.deepEqual(joined.config.history, [{ created_by: 'a' }, { created_by: 'b' }]);
  });

  test('a written layout reads back, shares its layers, and leaves known blobs out of its archive', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'beeuni-layout-'));
    try {
      const source = join(dir, 'source');
      mkdirSync(join(source, 'blobs/sha256'), { recursive: true });
      for (const letter of ['a', 'b']) writeFileSync(blobPath(source, digestOf(letter)), letter);
      const target = join(dir, 'target');
      const joined = joinParts(lower, upper);
      writeLayout(target, 'localhost/x:1', joined, [source]);
      assert.deepEqual(readParts(target), joined);
      assert.equal(statSync(blobPath(target, digestOf('a'))).ino, statSync(blobPath(source, digestOf('a'))).ino);
      const { id, tags } = readLayout(target);
      assert.deepEqual(tags, ['localhost/x:1']);

      const archive = join(dir, 'archive.tar');
      const chunks: Uint8Array[] = [];
      for await (const chunk of layoutArchive(target, new Set([digestOf('a')]))) chunks.push(chunk);
      writeFileSync(archive, Buffer.concat(chunks));
      const entries = tarEntries(archive);
      assert.equal(
        entries
          .get(`blobs/sha256/${'b'.repeat(64)}`)
          ?.read()
          .toString(),
        'b',
      );
      assert.ok(!entries.has(`blobs/sha256/${'a'.repeat(64)}`));
      assert.deepEqual(entries.get(`blobs/${id.replace(':', '/')}`)?.read(), readFileSync(blobPath(target, id)));
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  test('one layer more is the last, in the list and in the configuration', () => {
    const more = addLayer(
      lower,
      { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: digestOf('c'), size: 3 },
      'why',
    );
    assert.deepEqual(more.config.rootfs.diff_ids, [digestOf('a'), digestOf('c')]);
    assert.deepEqual(more.config.history?.at(-1), { created_by: 'why' });
    assert.equal(more.layers.at(-1)?.digest, digestOf('c'));
  });
});
