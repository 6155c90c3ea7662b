// Proves that the Dockerfiles keep the rule of the engine without Docker: their last stage is built on nothing.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { splitLastStage } from './buildah.ts';

const root = join(import.meta.dirname, '../..');

for (const path of ['Dockerfile', 'sandbox-image/Dockerfile']) {
  test(`the last stage of ${path} runs no program, because it is built on nothing`, () => {
    const { sources } = splitLastStage(readFileSync(join(root, path), 'utf8'));
    assert.deepEqual(
      sources.split('\n').filter((line) => /^\s*RUN\b/i.test(line)),
      [],
    );
  });
}
