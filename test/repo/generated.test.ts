// The generated files of the tree are those that the schemas give, and both CRDs stay small.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GENERATED_FILES, outdatedFiles, textInTree } from '#tools/generate.ts';

test('every generated file in the tree is what its generator gives', async () => {
  assert.ok(GENERATED_FILES.length >= 7, `only ${GENERATED_FILES.length} generated files are listed`);
  assert.deepEqual(
    (await outdatedFiles()).map(({ path }) => path),
    [],
    'run: make generate',
  );
});

test('a generated file that somebody edited is reported', async () => {
  const edited = { path: 'docs/reference/errors.md', text: () => 'something else' };
  assert.deepEqual(
    (await outdatedFiles([edited])).map(({ path }) => path),
    [edited.path],
  );
});

test('no two generators write the same file', () => {
  const paths = GENERATED_FILES.map(({ path }) => path);
  assert.deepEqual([...new Set(paths)], paths);
});

test('K11 both CRDs together stay below 120 KiB of YAML', async () => {
  const sizes = await Promise.all(
    ['crds/projects.yaml', 'crds/sessions.yaml'].map(async (path) => Buffer.byteLength((await textInTree(path)) ?? '')),
  );
  for (const size of sizes) assert.ok(size > 10_000, `a CRD has only ${size} bytes`);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(total < 120 * 1024, `${total} bytes`);
});
