// What decides whether an image is built again.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { copiedSources, inputFiles, inputHash } from './inputs.ts';

const dockerfile = `FROM x AS packages
COPY package.json package-lock.json ./
FROM y
COPY --from=packages /build /opt
COPY --chown=1000 package.json /opt/
COPY src ./src
`;

describe('image inputs', () => {
  test('the sources are those that come from the context, each once', () => {
    assert.deepEqual(copiedSources(dockerfile), ['package.json', 'package-lock.json', 'src']);
  });

  test('a changed source changes the hash, a changed test does not', () => {
    const root = mkdtempSync(join(tmpdir(), 'beeuni-inputs-'));
    try {
      mkdirSync(join(root, 'src/golden'), { recursive: true });
      for (const file of ['package.json', 'package-lock.json', 'src/a.ts', 'src/a.test.ts', 'src/golden/a.json'])
        writeFileSync(join(root, file), '1');
      assert.deepEqual(inputFiles(root, dockerfile), ['package-lock.json', 'package.json', 'src/a.ts']);
      const before = inputHash(root, dockerfile, 'salt');
      writeFileSync(join(root, 'src/a.test.ts'), '2');
      assert.equal(inputHash(root, dockerfile, 'salt'), before);
      writeFileSync(join(root, 'src/a.ts'), '2');
      assert.notEqual(inputHash(root, dockerfile, 'salt'), before);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  test('a missing source is named', () => {
    assert.throws(() => inputFiles('/nonexistent', 'COPY src ./src'), /copies src, which is missing/);
  });
});
