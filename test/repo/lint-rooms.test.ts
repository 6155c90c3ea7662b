// Plants imports that break the rooms and lets oxlint judge them with the generated rules: an editor shows what a test would.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url).pathname;

const planted: readonly (readonly [file: string, line: string])[] = [
  ['schema/wire/planted.ts', "import { readFile } from 'node:fs/promises';"],
  ['schema/wire/planted.ts', "import { AppError } from '#base/errors.ts';"],
  ['schema/wire/planted.ts', 'export const now = Date.now();'],
  ['schema/wire/planted.ts', 'export const chance = Math.random();'],
  ['kube/names.ts', 'export const id = process.pid;'],
  ['operator/session/plan.ts', "import { plan } from '#operator/project/plan.ts';"],
  ['operator/main.ts', "import { x } from '#controlplane/server.ts';"],
  ['controlplane/app/planted.ts', "import pg from 'pg';"],
  ['controlplane/app/planted.ts', "export * from '#controlplane/store/pool.ts';"],
  ['controlplane/gateway/planted.ts', "import { x } from '#controlplane/git/mirror.ts';"],
  ['sandbox-image/daemon/host/planted.ts', "export const a = await import('#daemon/harness/opencode/adapter.ts');"],
];

const allowed: readonly (readonly [file: string, line: string])[] = [
  ['schema/wire/planted.ts', "import type { Logger } from '#base/log.ts';"],
  ['schema/wire/planted.ts', "import { z } from 'zod';"],
  ['operator/session/plan.ts', "import { names } from '#kube/names.ts';"],
  ['operator/session/observe.ts', 'export const now = Date.now();'],
  ['controlplane/store/planted.ts', "import { readFile } from 'node:fs/promises';"],
  ['controlplane/store/planted.test.ts', "import { x } from '#controlplane/git/mirror.ts';"],
];

/** Problems that oxlint reports with the generated rules alone, per planted line. */
const problemsOf = async (lines: readonly (readonly [file: string, line: string])[]): Promise<readonly number[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'beeuni-lint-'));
  try {
    await copyFile(join(root, 'oxlint.rooms.generated.json'), join(folder, '.oxlintrc.json'));
    const counts: number[] = [];
    for (const [file, line] of lines) {
      const path = join(folder, file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, `${line}\n`);
      const output = await new Promise<string>((resolve) => {
        const options = { cwd: folder, timeout: 20_000 };
        execFile('oxlint', ['--allow', 'all', '--format', 'json', file], options, (_error, stdout) => resolve(stdout));
      });
      const { diagnostics, number_of_files: seen } = JSON.parse(output) as {
        diagnostics: readonly { code: string }[];
        number_of_files: number;
      };
      assert.equal(seen, 1, output);
      counts.push(diagnostics.filter(({ code }) => code.includes('no-restricted')).length);
      await rm(path);
    }
    return counts;
  } finally {
    await rm(folder, { recursive: true });
  }
};

test('oxlint reports every planted import, clock and random number', async () => {
  const counts = await problemsOf(planted);
  assert.deepEqual(
    planted.filter((_line, index) => counts[index] !== 1),
    [],
  );
});

test('oxlint reports nothing that the rooms allow', async () => {
  const counts = await problemsOf(allowed);
  assert.deepEqual(
    allowed.filter((_line, index) => counts[index] !== 0),
    [],
  );
});
