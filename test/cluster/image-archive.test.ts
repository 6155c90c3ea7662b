// The archive of the cluster's own image, and reading the identity of any.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { readImageIdentity, singleProgramImage } from './image-archive.ts';
import { runToEnd } from './process.ts';
import { tarEntries } from './tar.ts';

describe('image archive', () => {
  let dir = '';
  const archive = async (content: string): Promise<string> => {
    const path = join(dir, 'program');
    writeFileSync(path, content);
    const chunks: Uint8Array[] = [];
    for await (const chunk of singleProgramImage({ path, name: 'kube', tag: 'localhost/kube:1' })) chunks.push(chunk);
    const output = join(dir, 'image.tar');
    writeFileSync(output, Buffer.concat(chunks));
    return output;
  };
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'beeuni-archive-'));
  });
  after(() => rmSync(dir, { recursive: true }));

  test('its one layer holds the program, under the digest that the configuration names', async () => {
    const path = await archive('#!/bin/sh\n');
    const identity = readImageIdentity(path);
    assert.deepEqual(identity.tags, ['localhost/kube:1']);
    const entries = tarEntries(path);
    const config = JSON.parse(
      entries
        .get(`${identity.id.replace('sha256:', '')}.json`)
        ?.read()
        .toString() ?? '',
    ) as {
      rootfs: { diff_ids: string[] };
    };
    const [diffId] = config.rootfs.diff_ids;
    assert.ok(diffId);
    const layer = entries.get(`${diffId.replace('sha256:', '')}.tar`)?.read() ?? Buffer.alloc(0);
    assert.equal(`sha256:${createHash('sha256').update(layer).digest('hex')}`, diffId);
    writeFileSync(join(dir, 'layer.tar'), layer);
    assert.equal((await runToEnd('tar', ['-xOf', join(dir, 'layer.tar'), 'kube'])).stdout, '#!/bin/sh\n');
  });

  test('another program gives another id, the same program the same', async () => {
    const one = readImageIdentity(await archive('a')).id;
    assert.equal(readImageIdentity(await archive('a')).id, one);
    assert.notEqual(readImageIdentity(await archive('b')).id, one);
  });

  test('a file of another kind is refused', () => {
    const path = join(dir, 'text');
    writeFileSync(path, 'x'.repeat(2000));
    assert.throws(() => readImageIdentity(path), /not a plain tar archive/);
  });
});
