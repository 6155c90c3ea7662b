// An image that was built without a Docker engine, pushed for a cluster that runs elsewhere: real buildah, a registry in memory.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { blobPath } from '#test/cluster/oci-layout.ts';
import { type Registry, startRegistry } from '#test/support/registry.ts';
import { pushLayout } from '#tools/images/buildah.ts';
import { writeLayout } from '#tools/images/layout.ts';

const hasBuildah = spawnSync('buildah', ['--version']).status === 0 && process.getuid?.() === 0;
const skip = hasBuildah ? false : 'needs root and the Debian package buildah';

describe('an image for a cluster elsewhere', { skip, timeout: 120_000 }, () => {
  let root: string;
  let registry: Registry;
  const rules = process.env['CONTAINERS_REGISTRIES_CONF'];
  before(async () => {
    root = mkdtempSync(join(tmpdir(), 'beeuni-push-'));
    registry = await startRegistry();
    const file = join(root, 'registries.conf');
    writeFileSync(file, `[[registry]]\nlocation = "127.0.0.1:${registry.port}"\ninsecure = true\n`);
    process.env['CONTAINERS_REGISTRIES_CONF'] = file;
  });
  after(async () => {
    if (rules === undefined) delete process.env['CONTAINERS_REGISTRIES_CONF'];
    else process.env['CONTAINERS_REGISTRIES_CONF'] = rules;
    await registry.stop();
    rmSync(root, { recursive: true, force: true });
  });

  it('is pushed from a folder whose path no image could be named by', async () => {
    const tar = spawnSync('tar', ['--create', '--file=-', '--directory', root, 'registries.conf']).stdout;
    const digest = `sha256:${createHash('sha256').update(tar).digest('hex')}`;
    const parts = join(root, 'parts');
    mkdirSync(join(parts, 'blobs/sha256'), { recursive: true });
    writeFileSync(blobPath(parts, digest), tar);
    const folder = join(root, '.cache', 'some-image.oci');
    mkdirSync(join(root, '.cache'));
    const layers = [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest, size: tar.length }];
    const config = {
      architecture: 'amd64',
      os: 'linux',
      rootfs: { type: 'layers' as const, diff_ids: [digest] },
      history: [{ created_by: 'test' }],
    };
    writeLayout(folder, 'localhost/some-image:1', { config, layers }, [parts]);

    await pushLayout(folder, `127.0.0.1:${registry.port}/team/some-image:1`);
    const manifest = JSON.parse(String(registry.manifests.get('team/some-image:1'))) as {
      config: { digest: string };
      layers: { digest: string }[];
    };
    assert.equal(manifest.layers.length, 1);
    for (const blob of [manifest.config, ...manifest.layers]) assert.ok(registry.blobs.has(blob.digest), blob.digest);
  });

  it('fails with the words of the registry', async () => {
    const folder = join(root, '.cache', 'some-image.oci');
    await assert.rejects(
      pushLayout(folder, `127.0.0.1:${registry.port}/denied/some-image:1`),
      /denied\/some-image.*403/s,
    );
  });
});
